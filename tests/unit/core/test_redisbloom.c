/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RedisBloom's header in all its forms, and which headers are refused. Its
 * values are in test_payload.c.
 */
#include "core/redisbloom.h"

#include <stdio.h>

#include "base/little.h"
#include "core/stream.h"
#include "help.h"
#include "help_foreign.h"

enum { LINK_AT = 20, LINK = 53, BITS_AT = 8, LOG2_AT = 52 };

static struct bloom *
read(const struct hex *header)
{
    struct bloom *bloom = NULL;

    assert_int_equal(BLOOM_OK, redisbloom_read_header(header->data, header->len,
                                                      NULL, &bloom));
    assert_true(bloom_is_incomplete(bloom));
    return bloom;
}

static void
refuse(const struct hex *header, enum bloom_status status)
{
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom *bloom = NULL;

    assert_int_equal(status, redisbloom_read_header(header->data, header->len,
                                                    &env, &bloom));
    assert_null(bloom);
    assert_true(heap.out == 0);
}

/* Gives a filter its bits, all at once for each layer. */
static void
load_bits(struct bloom *bloom, const struct hex *bits)
{
    bool changed;

    for (uint64_t at = 0, left; (left = stream_left(bloom, at)) > 0;
         at += left) {
        assert_int_equal(
            STREAM_OK, stream_write(bloom, NULL,
                                    &(struct stream_chunk){ at, bits->data + at,
                                                            (size_t)left },
                                    false, &changed));
        assert_true(changed);
    }
    assert_false(bloom_is_incomplete(bloom));
}

static void
assert_has(const struct bloom *bloom, const char *item)
{
    assert_true(bloom_contains(bloom, bloom_hash(bloom, item, strlen(item))));
}

TEST(a_filter_of_redisbloom_has_its_items_and_gives_its_header_back)
{
    struct hex header = from_hex(SCALED_HEADER);
    struct hex bits = from_hex(SCALED_BITS);
    struct bloom *bloom = read(&header);
    uint8_t *again = malloc(REDISBLOOM_HEADER_BYTES_MAX);
    char item[16];

    load_bits(bloom, &bits);
    for (int i = 0; i < 150; i++) {
        (void)snprintf(item, sizeof(item), "item:%d", i);
        assert_has(bloom, item);
    }
    assert_true(bloom_items(bloom) == 150);
    assert_non_null(again);
    assert_int_equal(header.len, redisbloom_put_header(bloom, again));
    assert_memory_equal(header.data, again, header.len);
    bloom_free(bloom, NULL);
    free(again);
    free(bits.data);
    free(header.data);
}

/* Adds the items of the recorded filter to a new one. */
TEST(the_same_adds_give_the_same_bytes)
{
    struct bloom_params params = { .struct_size = sizeof(params),
                                   .capacity = 10,
                                   .error_rate = 0.005,
                                   .tightening = 0.5,
                                   .expansion = 2,
                                   .kind = BLOOM_REDISBLOOM };
    struct hex header = from_hex(SCALED_HEADER);
    struct hex bits = from_hex(SCALED_BITS);
    struct bloom *bloom = make(&params, NULL);
    uint8_t again[LINK_AT + 4 * LINK];
    uint64_t at = 0;
    char item[16];
    bool added;

    for (int i = 0; i < 150; i++) {
        int len = snprintf(item, sizeof(item), "item:%d", i);

        assert_int_equal(
            BLOOM_OK, bloom_add(bloom, NULL,
                                bloom_hash(bloom, item, (size_t)len), &added));
        assert_true(added);
    }
    assert_int_equal(header.len, redisbloom_put_header(bloom, again));
    assert_memory_equal(header.data, again, header.len);
    for (uint64_t left; (left = stream_left(bloom, at)) > 0; at += left) {
        uint8_t layer[256];

        stream_read(bloom, at, (size_t)left, layer);
        assert_memory_equal(bits.data + at, layer, (size_t)left);
    }
    assert_int_equal(bits.len, at);
    bloom_free(bloom, NULL);
    free(bits.data);
    free(header.data);
}

/* Rewrites a header of one layer as version 2.2.0 (keep growth) or 2.0 did. */
static struct hex
make_old(const struct hex *now, bool growth)
{
    size_t start = growth ? 20 : 16;
    struct hex old = { .len = start + 49 };

    old.data = malloc(old.len);
    assert_non_null(old.data);
    memcpy(old.data, now->data, start);
    memcpy(old.data + start, now->data + 20, 48);
    old.data[start + 48] = now->data[20 + 52];
    return old;
}

TEST(old_headers_come_back_in_the_present_form)
{
    struct hex header = from_hex(DEFAULT3_HEADER);
    struct hex bits = from_hex(DEFAULT3_BITS);

    for (int growth = 0; growth < 2; growth++) {
        struct hex old = make_old(&header, growth != 0);
        struct bloom *bloom = read(&old);
        uint8_t again[LINK_AT + LINK];

        load_bits(bloom, &bits);
        assert_has(bloom, "apple");
        assert_int_equal(header.len, redisbloom_put_header(bloom, again));
        assert_memory_equal(header.data, again, header.len);
        bloom_free(bloom, NULL);
        free(old.data);
    }
    free(bits.data);
    free(header.data);
}

/* As in version 1: 0 bits are stored, and log2 says them. */
TEST(filters_of_a_power_of_two_bits_keep_answering)
{
    struct hex header = from_hex(DEFAULT3_HEADER);
    struct bloom *bloom;
    uint8_t bits[128] = { 0 };
    bool added;
    bool changed;

    put_u32(header.data + 12, 4);
    put_u64(header.data + LINK_AT, sizeof(bits));
    put_u64(header.data + LINK_AT + BITS_AT, 0);
    header.data[LINK_AT + LOG2_AT] = 10;
    bloom = read(&header);
    assert_int_equal(
        STREAM_OK, stream_write(bloom, NULL,
                                &(struct stream_chunk){ 0, bits, sizeof(bits) },
                                false, &changed));
    assert_int_equal(BLOOM_OK,
                     bloom_add(bloom, NULL, bloom_hash(bloom, "a", 1), &added));
    assert_true(added);
    assert_has(bloom, "a");
    assert_int_equal(4, bloom_items(bloom));
    bloom_free(bloom, NULL);
    free(header.data);
}

/* RedisBloom accepts any number of items in a layer. */
TEST(a_layer_with_more_items_than_its_capacity_grows)
{
    struct hex header = from_hex(DEFAULT3_HEADER);
    struct hex bits = from_hex(DEFAULT3_BITS);
    struct bloom_hash hashes[2];
    struct bloom *bloom;
    bool added[2];
    size_t done;

    put_u64(header.data, 1000);
    put_u64(header.data + LINK_AT + 16, 1000);
    bloom = read(&header);
    load_bits(bloom, &bits);
    hashes[0] = bloom_hash(bloom, "new", 3);
    hashes[1] = bloom_hash(bloom, "newer", 5);
    assert_int_equal(BLOOM_OK,
                     bloom_add_batch(bloom, NULL, hashes, 2, added, &done));
    assert_true(added[0] && added[1]);
    assert_int_equal(2, bloom->count);
    assert_int_equal(1002, bloom_items(bloom));
    bloom_free(bloom, NULL);
    free(bits.data);
    free(header.data);
}

TEST(headers_that_make_no_sense_are_refused)
{
    static const struct {
        size_t at, width;
        uint64_t value;
        enum bloom_status status;
    } wrong[] = {
        { 0, 8, 4, BLOOM_CORRUPT },    /* items are not the sum */
        { 8, 4, 0, BLOOM_CORRUPT },    /* layers */
        { 8, 4, 2, BLOOM_CORRUPT },    /* more than there are */
        { 12, 4, 16, BLOOM_CORRUPT },  /* options */
        { 20, 8, 145, BLOOM_CORRUPT }, /* bytes */
        { 20, 8, (uint64_t)1 << 60, BLOOM_CORRUPT },
        { 28, 8, 0, BLOOM_CORRUPT }, /* bits */
        { 28, 8, 1160, BLOOM_CORRUPT },
        { 36, 8, UINT64_MAX, BLOOM_CORRUPT },         /* items */
        { 44, 8, 0, BLOOM_CORRUPT },                  /* rate 0 */
        { 44, 8, 0x7FF8000000000000, BLOOM_CORRUPT }, /* NaN */
        { 44, 8, 0x3FF0000000000000, BLOOM_CORRUPT }, /* 1 */
        { 52, 8, 0x4024000000000000, BLOOM_CORRUPT }, /* bits an item: 10 */
        { 60, 4, 9, BLOOM_CORRUPT },                  /* hashes */
        { 64, 8, UINT64_MAX, BLOOM_CORRUPT },         /* capacity */
        { 72, 1, 64, BLOOM_CORRUPT },                 /* log2 */
        { 72, 1, 11, BLOOM_CORRUPT }, /* of more bits than there are */
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct hex header = from_hex(DEFAULT3_HEADER);
        uint8_t bytes[8];

        put_u64(bytes, wrong[i].value);
        memcpy(header.data + wrong[i].at, bytes, wrong[i].width);
        refuse(&header, wrong[i].status);
        free(header.data);
    }
}

TEST(a_header_must_end_where_it_says)
{
    struct hex header = from_hex(SCALED_HEADER);

    while (header.len-- > 0) {
        refuse(&header, BLOOM_CORRUPT);
    }
    free(header.data);
}

TEST(a_huge_claim_is_judged_before_memory_is_asked_for)
{
    struct hex header = from_hex(DEFAULT3_HEADER);
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom *bloom = NULL;

    put_u64(header.data + LINK_AT, (uint64_t)1 << 60);
    put_u64(header.data + LINK_AT + BITS_AT, (uint64_t)1 << 63);
    env.size_limit_bytes = 128 << 20;
    assert_int_equal(BLOOM_LIMIT, redisbloom_read_header(
                                      header.data, header.len, &env, &bloom));
    assert_true(heap.most_ask < 4096 && heap.out == 0);
    free(header.data);
}

TEST(a_header_with_too_many_layers_is_refused_as_such)
{
    size_t len = LINK_AT + (size_t)(BLOOM_LAYERS_MAX + 1) * LINK;
    struct hex header = { .data = calloc(1, len), .len = len };

    assert_non_null(header.data);
    put_u32(header.data + 8, BLOOM_LAYERS_MAX + 1);
    refuse(&header, BLOOM_MAX_LAYERS);
    free(header.data);
}

TEST(each_failing_allocation_leaves_nothing)
{
    struct hex header = from_hex(SCALED_HEADER);
    enum bloom_status status = BLOOM_NOMEM;

    for (uint64_t nth = 1; status == BLOOM_NOMEM; nth++) {
        struct fault_heap heap = { .fail_at = nth };
        struct bloom_env env = fault_env(&heap);
        struct bloom *bloom = NULL;

        status = redisbloom_read_header(header.data, header.len, &env, &bloom);
        if (status == BLOOM_OK) {
            assert_true(heap.out == bloom_size(bloom));
            bloom_free(bloom, &env);
        }
        assert_true(heap.out == 0);
    }
    assert_int_equal(BLOOM_OK, status);
    free(header.data);
}
