/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Payloads of both modules are filled in in pieces of all lengths, while the
 * stored bytes move, and become the same filters as in one piece.
 */
#include "core/filling.h"

#include "base/little.h"
#include "core/crc64.h"
#include "core/payload.h"
#include "help.h"
#include "help_foreign.h"

static const char *const known[] = { DEFAULT3_PAYLOAD, SMALL_PAYLOAD,
                                     SCALED_PAYLOAD, VALKEY_PAYLOAD,
                                     SEEDED_PAYLOAD };

enum { KNOWN = sizeof(known) / sizeof(known[0]) };

/* Appends a string as LZF that has only literals. */
static void
put_packed(struct rdb_out *out, const struct rdb_string *string)
{
    size_t packed = (size_t)string->len + (size_t)(string->len + 31) / 32;

    rdb_put_length(out, RDB_STRING);
    rdb_put(out, "\xc3", 1);
    rdb_put_length(out, packed);
    rdb_put_length(out, string->len);
    for (size_t at = 0; at < string->len; at += 32) {
        size_t left = (size_t)string->len - at;
        uint8_t count = (uint8_t)(left < 32 ? left : 32);
        uint8_t control = (uint8_t)(count - 1);

        rdb_put(out, &control, 1);
        rdb_put(out, string->data + at, count);
    }
}

/* Returns valkey-bloom's payload with all of its arrays packed. */
static struct hex
pack_valkey(const char *digits)
{
    struct hex hex = from_hex(digits);
    struct hex packed = { .data = malloc(2 * hex.len), .len = 0 };
    struct rdb_in in = { .at = hex.data + 10, .left = hex.len - 20 };
    struct rdb_out out = { .to = packed.data };
    uint64_t layers = rdb_field_uint(&in);

    rdb_put(&out, hex.data, 10);
    rdb_put_uint(&out, layers);
    rdb_put_uint(&out, rdb_field_uint(&in));
    rdb_put_double(&out, rdb_field_double(&in));
    rdb_put_double(&out, rdb_field_double(&in));
    rdb_put_uint(&out, rdb_field_uint(&in));
    for (uint64_t i = 0; i < layers; i++) {
        struct rdb_string array;

        rdb_put_uint(&out, rdb_field_uint(&in));
        if (i + 1 == layers) {
            rdb_put_uint(&out, rdb_field_uint(&in));
        }
        rdb_field_string(&in, &array);
        put_packed(&out, &array);
    }
    assert_false(in.failed);
    rdb_put_length(&out, RDB_EOF);
    rdb_put(&out, hex.data + hex.len - 10, 2);
    put_u64(packed.data + out.len, crc64(0, packed.data, (size_t)out.len));
    packed.len = (size_t)out.len + 8;
    free(hex.data);
    return packed;
}

static struct hex
dump(const struct bloom *bloom)
{
    struct hex hex = { .len = (size_t)payload_bytes(bloom) };

    hex.data = malloc(hex.len);
    payload_put(bloom, hex.data);
    return hex;
}

/* Fills in pieces of so many bytes, each from another copy of the payload. */
static struct bloom *
fill_in_pieces(const struct hex *payload, size_t bytes)
{
    struct hex now = { malloc(payload->len), payload->len };
    struct filling filling;
    struct bloom *bloom = NULL;
    bool more = true;

    memcpy(now.data, payload->data, now.len);
    assert_int_equal(BLOOM_OK,
                     payload_begin(now.data, now.len, NULL, &filling, &bloom));
    while (more) {
        uint8_t *next = malloc(payload->len);

        memcpy(next, payload->data, payload->len);
        memset(now.data, 0, now.len);
        free(now.data);
        now.data = next;
        assert_int_equal(BLOOM_OK, filling_step(&filling, now.data, bloom, NULL,
                                                bytes, &more));
    }
    filling_fini(&filling, NULL);
    free(now.data);
    return bloom;
}

static void
assert_pieces_equal(const struct hex *payload, const struct hex *wanted)
{
    for (size_t bytes = 1; bytes < 300; bytes += 1 + bytes / 4) {
        struct bloom *bloom = fill_in_pieces(payload, bytes);
        struct hex got = dump(bloom);

        assert_int_equal(wanted->len, got.len);
        assert_memory_equal(wanted->data, got.data, got.len);
        free(got.data);
        bloom_free(bloom, NULL);
    }
}

TEST(pieces_of_any_length_make_the_same_filter)
{
    for (size_t i = 0; i < KNOWN; i++) {
        struct hex payload = from_hex(known[i]);
        struct bloom *bloom = NULL;
        struct hex wanted;

        assert_int_equal(BLOOM_OK,
                         payload_load(payload.data, payload.len, NULL, &bloom));
        wanted = dump(bloom);
        assert_pieces_equal(&payload, &wanted);
        bloom_free(bloom, NULL);
        free(wanted.data);
        free(payload.data);
    }
}

TEST(packed_arrays_of_valkey_bloom_are_unpacked)
{
    struct hex payload = pack_valkey(VALKEY_PAYLOAD);
    struct hex wanted = from_hex(VALKEY_PAYLOAD);

    assert_pieces_equal(&payload, &wanted);
    free(payload.data);
    free(wanted.data);
}

TEST(a_filling_that_stops_early_leaves_nothing)
{
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct hex payload = pack_valkey(VALKEY_PAYLOAD);
    struct filling filling;
    struct bloom *bloom = NULL;
    bool more = false;

    assert_int_equal(BLOOM_OK, payload_begin(payload.data, payload.len, &env,
                                             &filling, &bloom));
    assert_int_equal(
        BLOOM_OK, filling_step(&filling, payload.data, bloom, &env, 10, &more));
    assert_true(more);
    filling_fini(&filling, &env);
    bloom_free(bloom, &env);
    assert_int_equal(0, heap.out);
    free(payload.data);
}

TEST(packed_bytes_that_are_damaged_are_refused)
{
    struct hex payload = from_hex(DEFAULT3_PAYLOAD);

    /* The first byte of the packed array begins a copy of nothing. */
    for (size_t at = 0; at + 4 < payload.len; at++) {
        if (memcmp(payload.data + at, "\xc3\x40\x55\x40\x90", 5) == 0) {
            payload.data[at + 5] = 0x20;
        }
    }
    put_u64(payload.data + payload.len - 8,
            crc64(0, payload.data, payload.len - 8));
    for (size_t bytes = 1; bytes < 300; bytes += 33) {
        struct filling filling;
        struct bloom *bloom = NULL;
        enum bloom_status status = BLOOM_OK;
        bool more = true;

        assert_int_equal(BLOOM_OK, payload_begin(payload.data, payload.len,
                                                 NULL, &filling, &bloom));
        while (status == BLOOM_OK && more) {
            status =
                filling_step(&filling, payload.data, bloom, NULL, bytes, &more);
        }
        assert_int_equal(BLOOM_CORRUPT, status);
        filling_fini(&filling, NULL);
        bloom_free(bloom, NULL);
    }
    free(payload.data);
}
