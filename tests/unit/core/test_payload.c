/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Payloads of DUMP that the two modules made: each loads, and is written again
 * bit for bit, RedisBloom's without compression.
 */
#include "core/payload.h"

#include "base/little.h"
#include "core/codec.h"
#include "core/crc64.h"
#include "help.h"
#include "help_foreign.h"

static struct hex
put(const struct bloom *bloom)
{
    struct hex hex = { .len = (size_t)payload_bytes(bloom) };

    hex.data = malloc(hex.len);
    assert_non_null(hex.data);
    payload_put(bloom, hex.data);
    return hex;
}

static void
seal(struct hex *hex)
{
    put_u64(hex->data + hex->len - 8, crc64(0, hex->data, hex->len - 8));
}

static struct bloom *
load(const char *digits)
{
    struct hex hex = from_hex(digits);
    struct bloom *bloom = NULL;

    assert_true(payload_is_foreign(hex.data, hex.len));
    assert_int_equal(BLOOM_OK, payload_load(hex.data, hex.len, NULL, &bloom));
    free(hex.data);
    return bloom;
}

static void
assert_written_as(const char *digits)
{
    struct hex wanted = from_hex(digits);
    struct bloom *bloom = load(digits);
    struct hex again = put(bloom);

    assert_int_equal(wanted.len, again.len);
    assert_memory_equal(wanted.data, again.data, again.len);
    bloom_free(bloom, NULL);
    free(again.data);
    free(wanted.data);
}

TEST(payloads_without_compression_come_back_bit_for_bit)
{
    assert_written_as(SMALL_PAYLOAD);
    assert_written_as(VALKEY_PAYLOAD);
    assert_written_as(SEEDED_PAYLOAD);
}

/* What a program does with the payload of a DUMP. */
static void
check_program(const char *digits, enum bloom_kind kind, const char *item)
{
    struct hex payload = from_hex(digits);
    struct bloom_info info = { .struct_size = sizeof(info) };
    struct bloom *bloom = NULL;
    uint8_t *again;

    assert_int_equal(BLOOM_OK,
                     bloom_load(payload.data, payload.len, NULL, &bloom));
    bloom_get_info(bloom, &info);
    assert_int_equal(kind, info.kind);
    assert_true(bloom_contains(bloom, bloom_hash(bloom, item, strlen(item))));
    assert_int_equal(payload.len, bloom_dump_bytes(bloom));
    again = malloc(payload.len);
    assert_non_null(again);
    bloom_dump(bloom, again);
    assert_memory_equal(payload.data, again, payload.len);
    bloom_free(bloom, NULL);
    free(again);
    free(payload.data);
}

TEST(programs_load_and_dump_filters_of_both_products)
{
    check_program(SMALL_PAYLOAD, BLOOM_REDISBLOOM, "item:9");
    check_program(VALKEY_PAYLOAD, BLOOM_VALKEYBLOOM, "h");
    check_program(SEEDED_PAYLOAD, BLOOM_VALKEYBLOOM, "z");
}

/* It would abort a program that copies it, and DUMP returns none. */
TEST(programs_get_no_incomplete_filter)
{
    struct bloom_params params = { .struct_size = sizeof(params),
                                   .capacity = 100,
                                   .error_rate = 0.01,
                                   .tightening = 0.5 };
    uint8_t header[CODEC_HEAD_BYTES_MAX];
    struct bloom *bloom = NULL;
    struct bloom *loaded = NULL;
    uint8_t *data;
    size_t len;

    assert_int_equal(BLOOM_OK, bloom_new(&params, NULL, &bloom));
    len = payload_put_header(bloom, header);
    bloom_free(bloom, NULL);
    assert_int_equal(BLOOM_OK, payload_read_header(header, len, NULL, &bloom));
    len = (size_t)codec_dump_bytes(bloom);
    data = malloc(len);
    assert_non_null(data);
    codec_dump(bloom, 1, data);
    assert_int_equal(BLOOM_CORRUPT, bloom_load(data, len, NULL, &loaded));
    assert_null(loaded);
    bloom_free(bloom, NULL);
    free(data);
}

TEST(a_compressed_payload_is_expanded)
{
    struct bloom *bloom = load(DEFAULT3_PAYLOAD);
    struct hex first = put(bloom);
    struct hex bits = from_hex(DEFAULT3_BITS);
    struct bloom *again = NULL;
    size_t bytes;

    assert_true(bloom_contains(bloom, bloom_hash(bloom, "banana", 6)));
    assert_false(bloom_contains(bloom, bloom_hash(bloom, "absent", 6)));
    assert_memory_equal(bits.data, bloom_layer_lines(bloom, 0, &bytes),
                        bits.len);
    assert_int_equal(BLOOM_OK,
                     payload_load(first.data, first.len, NULL, &again));
    assert_int_equal(3, bloom_items(again));
    bloom_free(again, NULL);
    bloom_free(bloom, NULL);
    free(bits.data);
    free(first.data);
}

TEST(damage_anywhere_is_found)
{
    struct hex hex = from_hex(SMALL_PAYLOAD);
    struct bloom *bloom = NULL;

    for (size_t at = 0; at < hex.len; at++) {
        hex.data[at] ^= 0x10;
        assert_int_equal(BLOOM_CORRUPT,
                         payload_load(hex.data, hex.len, NULL, &bloom));
        hex.data[at] ^= 0x10;
        assert_int_equal(BLOOM_CORRUPT,
                         payload_load(hex.data, at, NULL, &bloom));
    }
    assert_null(bloom);
    free(hex.data);
}

/* With a right checksum, the fields are all that stands against an enemy. */
TEST(no_byte_with_a_right_checksum_does_harm)
{
    static const char *const known[] = { DEFAULT3_PAYLOAD, SCALED_PAYLOAD,
                                         VALKEY_PAYLOAD };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct hex hex = from_hex(known[i]);

        for (size_t at = 0; at < hex.len - 10; at++) {
            uint8_t was = hex.data[at];

            for (unsigned bit = 0; bit < 8; bit++) {
                struct fault_heap heap = { 0 };
                struct bloom_env env = fault_env(&heap);
                struct bloom *bloom = NULL;

                env.size_limit_bytes = 1 << 20;
                hex.data[at] = (uint8_t)(was ^ 1U << bit);
                seal(&hex);
                if (payload_load(hex.data, hex.len, &env, &bloom) == BLOOM_OK) {
                    bool added;

                    (void)bloom_add(bloom, &env, bloom_hash(bloom, "x", 1),
                                    &added);
                    assert_true(heap.out == bloom_size(bloom));
                    bloom_free(bloom, &env);
                }
                assert_true(heap.out == 0);
            }
            hex.data[at] = was;
        }
        free(hex.data);
    }
}

TEST(a_newer_value_is_refused_as_such)
{
    struct hex hex = from_hex(SMALL_PAYLOAD);
    struct bloom *bloom = NULL;

    hex.data[9] = (uint8_t)(hex.data[9] + 1);
    seal(&hex);
    assert_int_equal(BLOOM_VERSION,
                     payload_load(hex.data, hex.len, NULL, &bloom));
    free(hex.data);
}

TEST(any_rdb_version_is_accepted)
{
    struct hex hex = from_hex(VALKEY_PAYLOAD);
    struct bloom *bloom = NULL;

    put_u16(hex.data + hex.len - 10, 80);
    seal(&hex);
    assert_int_equal(BLOOM_OK, payload_load(hex.data, hex.len, NULL, &bloom));
    bloom_free(bloom, NULL);
    free(hex.data);
}

TEST(each_failing_allocation_leaves_nothing)
{
    static const char *const known[] = { DEFAULT3_PAYLOAD, SCALED_PAYLOAD,
                                         VALKEY_PAYLOAD };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct hex hex = from_hex(known[i]);
        enum bloom_status status = BLOOM_NOMEM;

        for (uint64_t nth = 1; status == BLOOM_NOMEM; nth++) {
            struct fault_heap heap = { .fail_at = nth };
            struct bloom_env env = fault_env(&heap);
            struct bloom *bloom = NULL;

            status = payload_load(hex.data, hex.len, &env, &bloom);
            if (status == BLOOM_OK) {
                bloom_free(bloom, &env);
            }
            assert_true(heap.out == 0);
        }
        assert_int_equal(BLOOM_OK, status);
        free(hex.data);
    }
}

TEST(other_payloads_are_not_taken_for_foreign_ones)
{
    assert_false(payload_is_foreign("BLMY", 4));
    assert_false(payload_is_foreign("", 0));
}

/* Frames one byte of type, what follows it, an RDB version, and the checksum.
 */
static size_t
frame(uint8_t *to, const char *value, size_t len, unsigned version)
{
    memcpy(to, value, len);
    put_u16(to + len, (uint16_t)version);
    put_u64(to + len + 2, crc64(0, to, len + 2));
    return len + 10;
}

TEST(an_intact_payload_of_another_type_is_named)
{
    static const struct {
        const char *value;
        size_t len;
        const char *type;
    } rows[] = {
        { "\0\1a", 3, "string" },
        { "\4\1\1a\1b", 6, "hash" },
        { "\x15\0", 2, "stream" },
        { "\x16\1", 2, "hash" },
        { "\7\x81\x30\x16\xe5\xa2\x89\x82\x14\x04", 10, "MBbloomCF" },
        { "\7\x81\x30\x16\xe5\xa2\x89\xbe\xf8\x04", 10, NULL },
        { "\xf0\1", 2, NULL },
    };
    char name[PAYLOAD_TYPE_MAX];
    uint8_t bytes[64];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static const unsigned known[] = { 9, 10, 11, 12, 80 };
        const char *type;
        size_t len;

        for (size_t v = 0; v < sizeof(known) / sizeof(known[0]); v++) {
            len = frame(bytes, rows[i].value, rows[i].len, known[v]);
            type = payload_other_type(bytes, len, name);
            if (rows[i].type == NULL) {
                assert_null(type);
                continue;
            }
            assert_string_equal(rows[i].type, type);
            bytes[len - 1] ^= 1;
            assert_null(payload_other_type(bytes, len, name));
        }
        len = frame(bytes, rows[i].value, rows[i].len, 99);
        assert_null(payload_other_type(bytes, len, name));
    }
    assert_null(payload_other_type(bytes, 0, name));
    assert_null(payload_other_type(bytes, 8, name));
}
