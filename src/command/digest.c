/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A filter is hashed in its stored form, head and lines, which is canonical;
 * only the head is built here.
 */
/* These functions of OpenSSL allocate nothing. OpenSSL 3 deprecates them, but
 * its newer ones crash without memory. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "command/digest.h"

#include "base/hex.h"
#include "core/codec.h"
#include "keyspace/scan.h"

#include <openssl/sha.h>
#include <string.h>

enum { SCRATCH_BYTES = 16 * 1024 }; /* a multiple of a line */

struct hashing {
    SHA256_CTX md;
    struct digest sum;
    uint64_t now_ms;
};

static void
add_bytes(struct hashing *hashing, const void *bytes, size_t len)
{
    (void)SHA256_Update(&hashing->md, bytes, len);
}

static void
add_number(struct hashing *hashing, uint64_t number)
{
    unsigned char bytes[8];

    for (unsigned i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(number >> (8 * i));
    }
    add_bytes(hashing, bytes, sizeof(bytes));
}

static void
add_bloom(struct hashing *hashing, const struct bloom *bloom)
{
    uint64_t head[(CODEC_HEAD_BYTES_MAX + 7) / 8]; /* aligned */
    uint64_t scratch[SCRATCH_BYTES / 8];
    const char *lines;
    size_t bytes;

    add_bytes(hashing, head, codec_put_head(bloom, 0, head));
    for (uint32_t i = 0; (lines = bloom_layer_lines(bloom, i, &bytes)) != NULL;
         i++) {
        for (size_t at = 0; at < bytes; at += SCRATCH_BYTES) {
            size_t len =
                bytes - at < SCRATCH_BYTES ? bytes - at : SCRATCH_BYTES;

            add_bytes(hashing, codec_stored(lines + at, len, scratch), len);
        }
    }
}

static void
begin_hash(struct hashing *hashing)
{
    (void)SHA256_Init(&hashing->md);
}

/* Adds the hash of all bytes since begin_hash to the sum, by XOR. */
static void
end_hash(struct hashing *hashing)
{
    unsigned char bytes[SHA256_DIGEST_LENGTH];

    (void)SHA256_Final(bytes, &hashing->md);
    for (unsigned i = 0; i < DIGEST_BYTES; i++) {
        hashing->sum.bytes[i] ^= bytes[i];
    }
}

static bool
add_entry(void *ctx, uint32_t db, const struct entry *entry,
          uint64_t expires_at_ms)
{
    struct slice name = entry_name(entry);
    struct hashing *hashing = ctx;

    if (expires_at_ms == 0 || expires_at_ms > hashing->now_ms) {
        begin_hash(hashing);
        add_number(hashing, db);
        add_number(hashing, name.len);
        add_bytes(hashing, name.data, name.len);
        add_number(hashing, expires_at_ms);
        add_bloom(hashing, &entry->bloom);
        end_hash(hashing);
    }
    return true;
}

void
digest_all(const struct keyspace *ks, uint64_t now_ms,
           struct digest *ret_digest)
{
    struct hashing hashing = { .now_ms = now_ms };

    (void)keyspace_each(ks, add_entry, &hashing);
    *ret_digest = hashing.sum;
}

void
digest_value(const struct bloom *bloom, uint64_t expires_at_ms,
             struct digest *ret_digest)
{
    struct hashing hashing = { .now_ms = 0 };

    begin_hash(&hashing);
    add_number(&hashing, expires_at_ms);
    add_bloom(&hashing, bloom);
    end_hash(&hashing);
    *ret_digest = hashing.sum;
}

void
digest_format(const struct digest *digest, char ret_hex[DIGEST_HEX])
{
    hex_put_bytes(ret_hex, digest->bytes, DIGEST_BYTES);
}
