/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as an RDB, whole and in small pieces, as they are and with a right
 * checksum. However it is cut, the same filters come out; a reader stops inside
 * of the bytes, and has a reason.
 */
#include "base/err.h"
#include "base/little.h"
#include "base/mem.h"
#include "core/crc64.h"
#include "target.h"
#include "tools/rdb.h"

#include <string.h>

enum { VALUE_BYTES_MAX = 4096, NAMES = 4 };

struct play {
    const uint8_t *data;
    size_t left, step;
    uint64_t filters, hash;
};

static bool
next(void *ctx, struct slice *ret_bytes)
{
    struct play *play = ctx;
    size_t len = play->step < play->left ? play->step : play->left;

    *ret_bytes = (struct slice){ (const char *)play->data, len };
    play->data += len;
    play->left -= len;
    return len > 0;
}

static bool
on_filter(void *ctx, const struct rdb_filter *filter)
{
    struct play *play = ctx;

    CHECK(filter->value.len <= VALUE_BYTES_MAX);
    CHECK(filter->key.len <= VALUE_BYTES_MAX);
    play->filters++;
    play->hash = crc64(play->hash, &filter->db, sizeof(filter->db));
    play->hash = crc64(play->hash, &filter->expires_at_ms,
                       sizeof(filter->expires_at_ms));
    play->hash = crc64(play->hash, filter->key.data, filter->key.len);
    play->hash = crc64(play->hash, filter->value.data, filter->value.len);
    return true;
}

static struct rdb_result
play_once(const uint8_t *data, size_t size, size_t step, struct play *play)
{
    const struct rdb_source source = { next, play };
    const struct rdb_visitor visitor = { on_filter, play, VALUE_BYTES_MAX };
    struct rdb_result result;
    bool ok;

    *play = (struct play){ .data = data, .left = size, .step = step };
    ok = rdb_read(&source, &visitor, &result);
    CHECK(ok == (result.status == RDB_OK));
    CHECK(ok == (result.why[0] == '\0'));
    CHECK(result.status != RDB_STOPPED && result.status != RDB_NOMEM);
    CHECK(result.offset <= size && result.filters == play->filters);
    CHECK(!ok || result.offset + result.rest.len + play->left == size);
    return result;
}

static struct rdb_result
play_all(const uint8_t *data, size_t size)
{
    struct play whole, pieces;
    struct rdb_result a = play_once(data, size, size, &whole);

    for (size_t step = 1; step < 100; step += 33) {
        struct rdb_result b = play_once(data, size, step, &pieces);

        CHECK(a.status == b.status && a.offset == b.offset);
        CHECK(strcmp(a.why, b.why) == 0 && a.checked == b.checked);
        CHECK(whole.filters == pieces.filters && whole.hash == pieces.hash);
        CHECK(memcmp(a.skipped, b.skipped, sizeof(a.skipped)) == 0);
    }
    return a;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rdb_result result = play_all(data, size);
    uint8_t *copy;

    /* Damaged in the last eight bytes that it needs: that is the checksum. */
    if (result.status != RDB_DAMAGED || size - result.offset < 8 ||
        strstr(result.why, "checksum") == NULL) {
        return 0;
    }
    copy = mem_alloc(size);
    memcpy(copy, data, size);
    put_u64(copy + result.offset, crc64(0, copy, (size_t)result.offset));
    result = play_all(copy, size);
    CHECK(result.status == RDB_OK);
    mem_free(copy);
    return 0;
}

/* ---- inputs for replay.c: entries of every kind, often with a wrong length -
 */

struct maker {
    uint64_t random;
    uint8_t *to;
    size_t at;
};

static uint64_t
below(struct maker *maker, uint64_t bound)
{
    return fuzz_next(&maker->random) % bound;
}

static void
put(struct maker *maker, const void *bytes, size_t len)
{
    memcpy(maker->to + maker->at, bytes, len);
    maker->at += len;
}

static void
put_byte(struct maker *maker, uint64_t byte)
{
    maker->to[maker->at++] = (uint8_t)byte;
}

static void
put_length(struct maker *maker, uint64_t length)
{
    if (below(maker, 400) == 0) {
        length = fuzz_next(&maker->random) >> below(maker, 60);
    }
    if (length < 64 && below(maker, 4) != 0) {
        put_byte(maker, length);
    } else if (length < 1U << 14 && below(maker, 2) == 0) {
        put_byte(maker, 0x40 | length >> 8);
        put_byte(maker, length);
    } else {
        uint64_t swapped = htobe64(length);

        put_byte(maker, 0x81);
        put(maker, &swapped, sizeof(swapped));
    }
}

static void
put_string(struct maker *maker)
{
    static const char filler[64] = "text";
    uint64_t form = below(maker, 12);
    uint64_t len = below(maker, sizeof(filler));

    if (form < 3) {
        put_byte(maker, 0xc0 | form);
        put(maker, filler, (size_t)1 << form);
    } else if (form == 3) {
        put_byte(maker, 0xc3);
        put_length(maker, 5);
        put_length(maker, 13);
        put(maker, "\x00z\xe0\x03\x00", 5);
    } else {
        put_length(maker, len);
        put(maker, filler, len);
    }
}

static void
put_module(struct maker *maker)
{
    static const uint8_t names[NAMES][9] = {
        { 0x81, 0x30, 0x16, 0xe5, 0xa2, 0x89, 0xbe, 0xf8, 0x04 },
        { 0x81, 0x6e, 0x5a, 0x28, 0x99, 0xf9, 0x6d, 0xac, 0x01 },
        { 0x81, 0x30, 0x16, 0xe5, 0xa2, 0x89, 0xbe, 0xf8, 0x00 },
        { 0x81, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08 },
    };

    put(maker, names[below(maker, NAMES)], sizeof(names[0]));
    for (uint64_t n = below(maker, 9); n > 0; n--) {
        uint64_t what = 1 + below(maker, below(maker, 100) == 0 ? 9 : 5);

        put_length(maker, what);
        if (what <= 2) {
            put_length(maker, below(maker, 1000));
        } else if (what <= 4) {
            put(maker, "\x00\x01\x02\x03\x04\x05\x06\x07", what == 3 ? 4 : 8);
        } else {
            put_string(maker);
        }
    }
    put_byte(maker, 0);
}

static void
put_entry(struct maker *maker)
{
    static const uint8_t types[] = { 0, 1,  2,  4,  5,  7,  7,  7, 7,
                                     9, 10, 14, 18, 20, 22, 24, 25 };
    uint64_t type = types[below(maker, sizeof(types))];
    uint64_t count = below(maker, 4);

    if (below(maker, 3) == 0) {
        put_byte(maker, 252);
        put(maker, "\x00\x01\x02\x03\x04\x05\x06\x07", 8);
    }
    put_byte(maker, below(maker, 200) == 0 ? below(maker, 256) : type);
    put_string(maker);
    if (type == 7) {
        put_module(maker);
    } else if (type >= 24) {
        put(maker, "\x00\x01\x02\x03\x04\x05\x06\x07", 8);
    }
    if (type == 0 || type == 9 || type == 10 || type == 20 || type == 25) {
        put_string(maker);
    } else if (type != 7) {
        put_length(maker, count);
        for (; count > 0; count--) {
            if (type == 18 || type == 22 || type == 24) {
                put_length(maker, 1);
            }
            put_string(maker);
            if (type == 4 || type == 22 || type == 24) {
                put_string(maker);
            } else if (type == 5) {
                put(maker, "\x00\x01\x02\x03\x04\x05\x06\x07", 8);
            }
        }
    }
}

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    struct maker maker = { .random = seed, .to = to };

    (void)max; /* far below */
    put(&maker, below(&maker, 2) == 0 ? "REDIS0010" : "VALKEY080", 9);
    put(&maker,
        "\xfa\x09redis-ver\x06"
        "7.0.15",
        18);
    for (uint64_t n = below(&maker, 30); n > 0; n--) {
        if (below(&maker, 6) == 0) {
            put_byte(&maker, 254);
            put_length(&maker, below(&maker, 16));
        }
        put_entry(&maker);
    }
    put_byte(&maker, 255);
    put(&maker, "checksum and more", 8 + below(&maker, 9));
    if (below(&maker, 8) == 0) {
        maker.at -= below(&maker, maker.at);
    }
    return maker.at;
}
