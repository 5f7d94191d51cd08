/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Payloads of BF.LOAD that valkey-bloom made, and which ones are refused. Its
 * values are in test_payload.c.
 */
#include "core/valkeybloom.h"

#include "base/little.h"
#include "help.h"
#include "help_foreign.h"

enum { EXPANSION_AT = 1, RATE_AT = 5, RANDOM_AT = 21, COUNT_AT = 22 };

static void
refuse(const struct hex *hex, enum bloom_status status)
{
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom *bloom = NULL;

    assert_int_equal(status,
                     valkeybloom_load(hex->data, hex->len, &env, &bloom));
    assert_null(bloom);
    assert_true(heap.out == 0);
}

static void
assert_written_as(const struct bloom *bloom, const struct hex *hex)
{
    struct rdb_out out = { .to = NULL };

    valkeybloom_put_load(bloom, &out);
    assert_true(out.len == hex->len);
    out = (struct rdb_out){ .to = malloc(hex->len) };
    assert_non_null(out.to);
    valkeybloom_put_load(bloom, &out);
    assert_memory_equal(hex->data, out.to, hex->len);
    free(out.to);
}

/* Loads a payload, asks for its items, writes it again, and builds the same
 * filter from nothing but its parameters and items. */
static void
check(const char *digits, const char *items)
{
    struct hex hex = from_hex(digits);
    struct bloom_params params = { .struct_size = sizeof(params) };
    struct bloom *loaded = NULL;
    struct bloom *built;
    bool added;

    assert_int_equal(BLOOM_OK,
                     valkeybloom_load(hex.data, hex.len, NULL, &loaded));
    assert_true(bloom_items(loaded) == strlen(items));
    assert_written_as(loaded, &hex);
    bloom_get_params(loaded, &params);
    params.stripes = 0;
    params.lines = 0;
    built = make(&params, NULL);
    for (; *items != 0; items++) {
        assert_true(bloom_contains(loaded, bloom_hash(loaded, items, 1)));
        assert_int_equal(
            BLOOM_OK,
            bloom_add(built, NULL, bloom_hash(built, items, 1), &added));
        assert_true(added);
    }
    assert_written_as(built, &hex);
    bloom_free(built, NULL);
    bloom_free(loaded, NULL);
    free(hex.data);
}

TEST(filters_of_valkey_bloom_come_back_and_can_be_built_again)
{
    check(VALKEY_LOAD, "abcdefgh");
    check(SEEDED_LOAD, "xyz");
}

TEST(payloads_that_make_no_sense_are_refused)
{
    static const struct {
        size_t at, width;
        uint64_t value;
        enum bloom_status status;
    } wrong[] = {
        { 0, 1, 2, BLOOM_VERSION },
        { RATE_AT, 8, 0x3FF0000000000000, BLOOM_CORRUPT },     /* 1 */
        { RATE_AT, 8, 0x7FF8000000000000, BLOOM_CORRUPT },     /* NaN */
        { RATE_AT + 8, 8, 0x4000000000000000, BLOOM_CORRUPT }, /* 2 */
        { RANDOM_AT, 1, 1, BLOOM_CORRUPT }, /* the seed is the fixed one */
        { RANDOM_AT, 1, 2, BLOOM_CORRUPT },
        { EXPANSION_AT, 4, 3, BLOOM_CORRUPT }, /* capacities are doubled */
        { EXPANSION_AT, 4, 0, BLOOM_CORRUPT }, /* three layers */
        { COUNT_AT, 8, 0, BLOOM_CORRUPT },
        { COUNT_AT, 8, 2, BLOOM_CORRUPT },
        { COUNT_AT, 8, 4, BLOOM_CORRUPT },
        { COUNT_AT, 8, 1025, BLOOM_MAX_LAYERS },
        { COUNT_AT, 8, UINT64_MAX, BLOOM_MAX_LAYERS },
        { 30, 8, 47, BLOOM_CORRUPT }, /* length of the first array */
        { 30, 8, 0, BLOOM_CORRUPT },
        { 30, 8, UINT64_MAX, BLOOM_CORRUPT },
        { 38, 1, 2, BLOOM_CORRUPT }, /* its version */
        { 39, 8, 4, BLOOM_CORRUPT }, /* its bytes */
        { 47, 4, 0, BLOOM_CORRUPT }, /* its hashes */
        { 47, 4, UINT32_MAX, BLOOM_CORRUPT },
        { 51, 1, 0, BLOOM_CORRUPT }, /* its seed */
        { 86, 8, 1, BLOOM_CORRUPT }, /* its items: not full */
        { 94, 8, 0, BLOOM_CORRUPT }, /* its capacity */
        { 94, 8, UINT64_MAX, BLOOM_CORRUPT },
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct hex hex = from_hex(VALKEY_LOAD);
        uint8_t bytes[8];

        put_u64(bytes, wrong[i].value);
        memcpy(hex.data + wrong[i].at, bytes, wrong[i].width);
        refuse(&hex, wrong[i].status);
        free(hex.data);
    }
}

TEST(a_payload_must_end_where_it_says)
{
    struct hex hex = from_hex(VALKEY_LOAD);
    uint8_t *longer = calloc(1, hex.len + 1);
    struct hex more = { .data = longer, .len = hex.len + 1 };

    assert_non_null(longer);
    memcpy(longer, hex.data, hex.len);
    refuse(&more, BLOOM_CORRUPT);
    while (hex.len-- > 0) {
        refuse(&hex, BLOOM_CORRUPT);
    }
    free(longer);
    free(hex.data);
}
