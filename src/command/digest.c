/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The filter goes through the hash in its stored form, head and lines, which
 * is canonical; only the head is put together here.
 */
#include "command/digest.h"

#include "core/codec.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

enum { SCRATCH_BYTES = 16 * 1024 }; /* a multiple of a line */

struct hashing {
    EVP_MD_CTX *md;
    struct digest sum;
    uint64_t now_ms;
    bool failed;
};

static void
add(struct hashing *hashing, const void *bytes, size_t len)
{
    hashing->failed =
        EVP_DigestUpdate(hashing->md, bytes, len) != 1 || hashing->failed;
}

static void
add_number(struct hashing *hashing, uint64_t number)
{
    unsigned char bytes[8];

    for (unsigned i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(number >> (8 * i));
    }
    add(hashing, bytes, sizeof(bytes));
}

static void
add_bloom(struct hashing *hashing, const struct bloom *bloom)
{
    uint64_t head[(CODEC_HEAD_BYTES_MAX + 7) / 8]; /* aligned */
    uint64_t scratch[SCRATCH_BYTES / 8];
    const char *lines;
    size_t bytes;

    add(hashing, head, codec_put_head(bloom, 0, head));
    for (uint32_t i = 0; (lines = bloom_layer_lines(bloom, i, &bytes)) != NULL;
         i++) {
        for (size_t at = 0; at < bytes; at += SCRATCH_BYTES) {
            size_t len =
                bytes - at < SCRATCH_BYTES ? bytes - at : SCRATCH_BYTES;

            add(hashing, codec_stored(lines + at, len, scratch), len);
        }
    }
}

static void
begin(struct hashing *hashing)
{
    hashing->failed = EVP_DigestInit_ex(hashing->md, EVP_sha256(), NULL) != 1 ||
                      hashing->failed;
}

/* Puts what was hashed since begin into the sum. */
static void
end(struct hashing *hashing)
{
    unsigned char bytes[EVP_MAX_MD_SIZE] = { 0 };

    hashing->failed =
        EVP_DigestFinal_ex(hashing->md, bytes, NULL) != 1 || hashing->failed;
    for (unsigned i = 0; i < DIGEST_BYTES; i++) {
        hashing->sum.bytes[i] ^= bytes[i];
    }
}

static bool
add_entry(void *ctx, uint32_t db, const struct entry *entry,
          uint64_t expires_at_ms)
{
    struct hashing *hashing = ctx;

    if (expires_at_ms == 0 || expires_at_ms > hashing->now_ms) {
        begin(hashing);
        add_number(hashing, db);
        add_number(hashing, entry->name_len);
        add(hashing, entry->name, entry->name_len);
        add_number(hashing, expires_at_ms);
        add_bloom(hashing, &entry->bloom);
        end(hashing);
    }
    return !hashing->failed;
}

bool
digest_all(const struct keyspace *ks, uint64_t now_ms,
           struct digest *ret_digest)
{
    struct hashing hashing = { .md = EVP_MD_CTX_new(), .now_ms = now_ms };
    bool done = hashing.md != NULL && keyspace_each(ks, add_entry, &hashing);

    EVP_MD_CTX_free(hashing.md);
    if (done) {
        *ret_digest = hashing.sum;
    }
    return done;
}

bool
digest_value(const struct bloom *bloom, uint64_t expires_at_ms,
             struct digest *ret_digest)
{
    struct hashing hashing = { .md = EVP_MD_CTX_new() };
    bool done;

    if (hashing.md == NULL) {
        return false;
    }
    begin(&hashing);
    add_number(&hashing, expires_at_ms);
    add_bloom(&hashing, bloom);
    end(&hashing);
    done = !hashing.failed;
    EVP_MD_CTX_free(hashing.md);
    if (done) {
        *ret_digest = hashing.sum;
    }
    return done;
}

void
digest_format(const struct digest *digest, char ret_hex[DIGEST_HEX])
{
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        (void)snprintf(ret_hex + 2 * i, 3, "%02x", digest->bytes[i]);
    }
}
