/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as what a hostile server says to a copy of a filter: replies and
 * pushes, a millisecond apart. The copy takes no more memory than it may, gives
 * all of it back, and never says "absent" later than max_stale_ms after it last
 * asked.
 */
#include "base/err.h"
#include "core/payload.h"
#include "core/stream.h"
#include "local/local_copy.h"
#include "proto/reply.h"
#include "proto/resp.h"
#include "target.h"

#include <stdlib.h>
#include <string.h>

enum { STALE_MS = 20, LIMIT_BYTES = 1 << 20, HEADER_MAX = 4096 };

static size_t taken;

static void *
take(void *ctx, size_t bytes)
{
    (void)ctx;
    if (bytes > LIMIT_BYTES || taken > 4 * (size_t)LIMIT_BYTES - bytes) {
        return NULL;
    }
    taken += bytes;
    return calloc(1, bytes);
}

static void *
take_lines(void *ctx, size_t bytes)
{
    void *lines;

    (void)ctx;
    if (bytes > LIMIT_BYTES || taken > 4 * (size_t)LIMIT_BYTES - bytes) {
        return NULL;
    }
    lines = aligned_alloc(BLOOM_LINE_BYTES, bytes);
    CHECK(lines != NULL);
    taken += bytes;
    return memset(lines, 0, bytes);
}

static void
give(void *ctx, void *ptr, size_t bytes)
{
    (void)ctx;
    taken -= ptr != NULL ? bytes : 0;
    free(ptr);
}

static const struct bloom_env env = { .alloc = take,
                                      .free = give,
                                      .alloc_lines = take_lines,
                                      .free_lines = give,
                                      .size_limit_bytes = LIMIT_BYTES };

/* Lets the copy say what it has to. Returns whether it asked. */
static bool
say(struct local_copy *copy, uint64_t now_ms)
{
    struct buf out = { 0 };
    bool asked;

    (void)local_copy_say(copy, now_ms, &out);
    CHECK(!out.failed);
    asked =
        out.len > 0 && memmem(out.data, out.len, "BF.SUBSCRIBE", 12) != NULL;
    buf_free(&out);
    return asked;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice bytes = { (const char *)data, size }, value;
    const struct local_options options = { .key = slice_lit("k"),
                                           .max_stale_ms = STALE_MS,
                                           .refresh_ms = 10,
                                           .missing_is_absent = size % 2 == 0,
                                           .env = &env };
    struct local_copy *copy = local_copy_new(&options);
    uint64_t now_ms = 1000, asked_ms = 0;

    local_copy_link(copy, now_ms);
    for (;; now_ms++) {
        if (say(copy, now_ms)) {
            asked_ms = now_ms;
        }
        CHECK(local_copy_contains(copy, slice_lit("x"), now_ms) !=
                  LOCAL_ABSENT ||
              now_ms <= asked_ms + STALE_MS);
        if (!resp_element(&bytes, &value)) {
            break;
        }
        if (!local_copy_take(copy, value, now_ms)) {
            struct local_facts facts;

            local_copy_facts(copy, &facts);
            CHECK(facts.error[0] != '\0' && facts.fault != BLOOMERY_LOCAL_OK);
            local_copy_cut(copy);
            local_copy_link(copy, now_ms);
        }
    }
    CHECK(local_copy_contains(copy, slice_lit("x"), now_ms + STALE_MS + 1) !=
          LOCAL_ABSENT);
    local_copy_free(copy);
    CHECK(taken == 0);
    return 0;
}

/* ---- inputs -------------------------------------------------------------- */

static const char *const pushes[] = {
    ">8\r\n$10\r\nbf.message\r\n$1\r\nk\r\n$2\r\nis\r\n$1\r\n1\r\n$1\r\n7\r\n"
    "$1\r\n3\r\n$1\r\n1\r\n$1\r\n9\r\n",
    ">8\r\n$10\r\nbf.message\r\n$1\r\nk\r\n$2\r\nis\r\n$1\r\n1\r\n$1\r\n8\r\n"
    "$1\r\n3\r\n$1\r\n1\r\n$1\r\n9\r\n",
    ">5\r\n$10\r\nbf.message\r\n$1\r\nk\r\n$2\r\nis\r\n$1\r\n1\r\n$7\r\n"
    "missing\r\n",
    ">4\r\n$10\r\nbf.message\r\n$1\r\nk\r\n$3\r\nadd\r\n$16\r\n"
    "0123456789abcdef\r\n",
    ">5\r\n$10\r\nbf.message\r\n$1\r\nk\r\n$3\r\nadd\r\n$16\r\n"
    "0123456789abcdef\r\n$13\r\n1700000000000\r\n",
    ">4\r\n$10\r\nbf.message\r\n$1\r\nk\r\n$7\r\ndeleted\r\n$1\r\n9\r\n",
    ">3\r\n$10\r\nbf.message\r\n$1\r\nk\r\n$7\r\nchanged\r\n",
    "-ERR x\r\n",
    "+OK\r\n",
};

/* Appends the reply to BF.SCANDUMP of the header (iterator 1), or of the piece
 * that ends before `iterator`. */
static void
put_dump(struct buf *out, int64_t iterator, struct slice bytes)
{
    struct reply reply = { out, 3 };

    reply_array(&reply, 2);
    reply_int(&reply, iterator);
    reply_bulk(&reply, bytes);
}

/* A load as it ought to be, with other frames in between. */
size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    static const uint32_t kinds[] = { BLOOM_NATIVE, BLOOM_REDISBLOOM,
                                      BLOOM_VALKEYBLOOM, BLOOM_DELETABLE,
                                      BLOOM_AGEING };
    static char bytes[HEADER_MAX];
    uint64_t random = seed;
    uint32_t kind = kinds[fuzz_next(&random) % 5];
    struct bloom_params params = {
        .struct_size = sizeof(params),
        .capacity = 1 + fuzz_next(&random) % 100,
        .error_rate = 0.01,
        .tightening = 0.5,
        .expansion = 2,
        .kind = kind,
        .region = kind == BLOOM_DELETABLE ? 4 : 0,
        .seconds = kind == BLOOM_AGEING ? 60 : 0,
        .generations = kind == BLOOM_AGEING ? 4 : 0,
        .now_ms = kind == BLOOM_AGEING ? UINT64_C(1700000000000) : 0,
    };
    struct bloom *bloom;
    struct buf out = { 0 };
    size_t len;

    CHECK(bloom_new(&params, NULL, &bloom) == BLOOM_OK);
    for (int part = 0; part < 4; part++) {
        size_t most = payload_header_bytes(bloom);

        for (uint64_t n = fuzz_next(&random) % 3; n > 0; n--) {
            const char *push =
                pushes[fuzz_next(&random) % (sizeof(pushes) / sizeof(*pushes))];

            buf_append_slice(&out, slice_of(push));
        }
        if (part == 0 || part == 3) {
            buf_append_slice(&out, slice_of(pushes[0]));
        } else if (part == 1 && most <= HEADER_MAX) {
            len = payload_put_header(bloom, (uint8_t *)bytes);
            put_dump(&out, 1, (struct slice){ bytes, len });
        } else if (part == 2 && stream_left(bloom, 0) <= HEADER_MAX) {
            len = (size_t)stream_left(bloom, 0);
            stream_read(bloom, 0, len, bytes);
            put_dump(&out, (int64_t)len + 1, (struct slice){ bytes, len });
        }
    }
    bloom_free(bloom, NULL);
    if (fuzz_next(&random) % 2 == 0) {
        out.data[fuzz_next(&random) % out.len] ^=
            (char)(1U << fuzz_next(&random) % 8);
    }
    len = out.len < max ? out.len : max;
    memcpy(to, out.data, len);
    buf_free(&out);
    return len;
}
