/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bytes that are no dump, damaged, or sealed with a right checksum over wrong
 * figures: refused with the right status before any memory is asked for. The
 * dumps are drawn by an encoder of the test's own, so that the format cannot
 * change on both sides unnoticed.
 */
#include "core/bloom.h"
#include <math.h>

#include "../test.h"
#include "core/sizing.h"
#include "help.h"
#include "help_codec.h"

enum { DRAFT_LAYERS = 4 };

TEST(no_damaged_byte_is_accepted)
{
    struct bytes dump = small_dump();
    uint64_t random = test_seed();

    assert_load(BLOOM_OK, dump.data, dump.len);
    for (size_t at = 0; at < dump.len; at++) {
        const uint8_t good = dump.data[at];

        for (unsigned bit = 0; bit < 8; bit++) {
            dump.data[at] = (uint8_t)(good ^ (1U << bit));
            assert_load(BLOOM_CORRUPT, dump.data, dump.len);
        }
        if (good != 0) {
            dump.data[at] = 0;
            assert_load(BLOOM_CORRUPT, dump.data, dump.len);
        }
        dump.data[at] = (uint8_t)(good + 1 + test_random_below(&random, 255));
        assert_load(BLOOM_CORRUPT, dump.data, dump.len);
        dump.data[at] = good;
    }
    free(dump.data);
}

TEST(no_other_length_is_accepted)
{
    struct bytes dump = small_dump();
    uint8_t *longer = calloc(1, dump.len + 200);

    assert_non_null(longer);
    for (size_t len = 0; len < dump.len + 200; len++) {
        memset(longer, 0, dump.len + 200);
        memcpy(longer, dump.data, dump.len);
        assert_load(len == dump.len ? BLOOM_OK : BLOOM_CORRUPT, longer, len);
        if (len >= 16 && len != dump.len) {
            seal(longer, len); /* a right checksum does not help */
            assert_load(BLOOM_CORRUPT, longer, len);
        }
    }
    assert_load(BLOOM_CORRUPT, NULL, 0);
    free(longer);
    free(dump.data);
}

TEST(a_head_that_is_damaged_and_sealed_again_never_gives_another_filter)
{
    struct bytes dump = small_dump();
    uint64_t random = test_seed();

    for (unsigned round = 0; round < 20000 * test_rounds(); round++) {
        uint8_t *copy = malloc(dump.len);
        struct bloom *bloom = NULL;
        uint64_t incarnation;

        assert_non_null(copy);
        memcpy(copy, dump.data, dump.len);
        for (uint64_t left = 1 + test_random_below(&random, 3); left > 0;
             left--) {
            copy[test_random_below(&random,
                                   CODEC_FIXED_BYTES + 3 * CODEC_LAYER_BYTES)] =
                (uint8_t)test_random(&random);
        }
        seal(copy, dump.len);
        if (codec_load(copy, dump.len, NULL, &incarnation, &bloom) ==
            BLOOM_OK) {
            struct bytes again = dump_of(bloom, incarnation);

            assert_int_equal(dump.len, again.len);
            assert_memory_equal(copy, again.data, again.len);
            free(again.data);
        }
        bloom_free(bloom, NULL);
        free(copy);
    }
    free(dump.data);
}

/* ---- an encoder of the test's own ---------------------------------------- */

struct draft {
    uint32_t version, kind, flags, expansion, layers;
    double error_rate, tightening;
    uint64_t incarnation;
    struct codec_layer layer[DRAFT_LAYERS];
};

static void
set_layer(struct draft *draft, uint32_t index, uint64_t capacity,
          uint64_t items)
{
    struct geometry geometry =
        sizing_geometry(capacity, sizing_layer_rate(draft->error_rate,
                                                    draft->tightening, index));

    draft->layer[index] = (struct codec_layer){ .capacity = capacity,
                                                .items = items,
                                                .lines = geometry.lines,
                                                .stripes = geometry.stripes };
}

/* Three layers of 400, 800 and 1600 items, the newest half full. */
static struct draft
good_draft(void)
{
    struct draft draft = { .version = 1,
                           .kind = 1,
                           .expansion = 2,
                           .layers = 3,
                           .error_rate = 0.01,
                           .tightening = 0.5,
                           .incarnation = 0x0123456789abcdef };

    set_layer(&draft, 0, 400, 400);
    set_layer(&draft, 1, 800, 800);
    set_layer(&draft, 2, 1600, 700);
    return draft;
}

static struct bytes
encode(const struct draft *draft)
{
    uint32_t layers =
        draft->layers < DRAFT_LAYERS ? draft->layers : DRAFT_LAYERS;
    size_t lines_at = 72 + 32 * (size_t)layers;
    struct bytes dump = { .len = lines_at + 8 };

    for (uint32_t i = 0; i < layers; i++) {
        dump.len += draft->layer[i].lines * draft->layer[i].stripes * 64;
    }
    dump.data = calloc(1, dump.len);
    assert_non_null(dump.data);
    memset(dump.data + lines_at, 0x81, dump.len - lines_at - 8);
    memcpy(dump.data, "BLMY", 4);
    put_le(dump.data + 4, draft->version, 2);
    put_le(dump.data + 6, draft->kind, 1);
    put_le(dump.data + 7, draft->flags, 1);
    put_le(dump.data + 8, draft->expansion, 4);
    put_le(dump.data + 12, draft->layers, 4);
    put_double(dump.data + 16, draft->error_rate);
    put_double(dump.data + 24, draft->tightening);
    memset(dump.data + 32, 0xa5, 32);
    put_le(dump.data + 64, draft->incarnation, 8);
    for (uint32_t i = 0; i < layers; i++) {
        uint8_t *at = dump.data + 72 + 32 * (size_t)i;

        put_le(at, draft->layer[i].capacity, 8);
        put_le(at + 8, draft->layer[i].items, 8);
        put_le(at + 16, draft->layer[i].stripes, 4);
        put_le(at + 20, draft->layer[i].log2, 4);
        put_le(at + 24, draft->layer[i].lines, 8);
    }
    seal(dump.data, dump.len);
    return dump;
}

static void
assert_draft(enum bloom_status expected, const struct draft *draft)
{
    struct bytes dump = encode(draft);

    assert_load(expected, dump.data, dump.len);
    free(dump.data);
}

/* The good draft with one change. */
#define ASSERT_DRAFT(expected, change)                                         \
    do {                                                                       \
        struct draft draft = good_draft();                                     \
        change;                                                                \
        assert_draft((expected), &draft);                                      \
    } while (0)

TEST(the_format_is_what_its_drawing_says)
{
    struct draft draft = good_draft();
    struct bytes drawn = encode(&draft);
    struct bloom *bloom = load(drawn, NULL, draft.incarnation);
    struct bytes dumped = dump_of(bloom, draft.incarnation);
    struct bloom_params params = { .struct_size = sizeof(params) };
    struct bloom_layer_info layer = { .struct_size = sizeof(layer) };
    size_t bytes;
    const uint8_t *lines = bloom_layer_lines(bloom, 2, &bytes);

    assert_int_equal(drawn.len, dumped.len);
    assert_memory_equal(drawn.data, dumped.data, drawn.len);
    bloom_get_params(bloom, &params);
    assert_int_equal(400, params.capacity);
    assert_true(params.error_rate == 0.01 && params.tightening == 0.5);
    assert_int_equal(2, params.expansion);
    assert_int_equal(0xa5, params.seed[31]);
    assert_int_equal(1900, bloom_items(bloom));
    assert_true(bloom_get_layer(bloom, 2, &layer));
    assert_int_equal(1600, layer.capacity);
    assert_int_equal(700, layer.items);
    assert_int_equal(draft.layer[2].lines, layer.lines);
    assert_int_equal(draft.layer[2].stripes, layer.stripes);
    assert_int_equal(0x81, lines[bytes - 1]);
    bloom_free(bloom, NULL);
    free(drawn.data);
    free(dumped.data);
}

TEST(every_head_field_is_checked_against_the_others)
{
    const double below_one = nextafter(1, 0);

    ASSERT_DRAFT(BLOOM_OK, (void)0);
    ASSERT_DRAFT(BLOOM_OK, draft.incarnation = 0);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.error_rate = 0);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.error_rate = 1);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.error_rate = -0.01);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.error_rate = (double)NAN);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.error_rate = (double)INFINITY);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.error_rate = 0.005); /* too few lines */
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.error_rate = 0.2);   /* too many */
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.tightening = 0);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.tightening = 1);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.tightening = -0.5);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.tightening = (double)NAN);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.tightening = 0.1);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.tightening = below_one);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.expansion = 0);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.expansion = 1);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.expansion = 3);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.expansion = UINT32_MAX);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layers = 0);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layers = BLOOM_LAYERS_MAX + 1);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layers = UINT32_MAX);
    /* A chain may end earlier, if its newest layer is as full as you like. */
    ASSERT_DRAFT(BLOOM_OK, draft.layers = 2);
    ASSERT_DRAFT(BLOOM_OK, draft.layers = 1);
    ASSERT_DRAFT(BLOOM_OK, (draft.layers = 1, draft.expansion = 0));
    ASSERT_DRAFT(BLOOM_CORRUPT, (draft.layers = 4, draft.expansion = 2));
}

TEST(every_layer_field_is_checked_against_the_others)
{
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layer[0].capacity = 0);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layer[0].capacity = 401);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layer[0].capacity = UINT64_MAX);
    ASSERT_DRAFT(BLOOM_CORRUPT, set_layer(&draft, 2, 1601, 700));
    ASSERT_DRAFT(BLOOM_CORRUPT, set_layer(&draft, 2, 800, 700));
    ASSERT_DRAFT(BLOOM_CORRUPT, set_layer(&draft, 1, 400, 400));
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layer[0].items = 399);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layer[0].items = 401);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layer[1].items = 0);
    ASSERT_DRAFT(BLOOM_OK, draft.layer[2].items = 0);
    ASSERT_DRAFT(BLOOM_OK, draft.layer[2].items = 1600);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layer[2].items = 1601);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layer[2].items = UINT64_MAX);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layer[1].log2 = 1);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layer[2].log2 = 0x80000000);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layer[1].lines = 0);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layer[1].stripes = 0);
    /* The length agrees; what is wrong is the rate, or the waste. Other
     * mathematical libraries may have come to one line more. */
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layer[2].lines--);
    ASSERT_DRAFT(BLOOM_OK, draft.layer[2].lines++);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layer[2].lines += 2);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layer[0].stripes++);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.layer[2].stripes = 2);
}

TEST(a_chain_that_could_not_have_grown_is_refused)
{
    struct draft draft = good_draft();

    /* The second layer's rate would not be a normal number. */
    draft.error_rate = 1e-300;
    draft.layers = 2;
    for (int pass = 0; pass < 2; pass++) {
        draft.tightening = pass == 0 ? 1e-5 : 1e-9;
        set_layer(&draft, 0, 40, 40);
        set_layer(&draft, 1, 80, 3);
        assert_draft(pass == 0 ? BLOOM_OK : BLOOM_CORRUPT, &draft);
    }

    /* A nonscaling filter has one layer, be the second ever so empty. */
    draft = good_draft();
    draft.layers = 2;
    draft.expansion = 0;
    draft.layer[1] = (struct codec_layer){ .lines = 1, .stripes = 1 };
    assert_draft(BLOOM_CORRUPT, &draft);
}

TEST(figures_beyond_all_bounds_are_refused)
{
    static const uint64_t figures[] = {
        1,
        (uint64_t)1 << 32,
        (uint64_t)1 << 57, /* INT64_MAX bytes and one line */
        ((uint64_t)1 << 57) - 1,
        (uint64_t)1 << 58, /* 2^64 bytes: wraps to none */
        ((uint64_t)1 << 58) + 1,
        INT64_MAX,
        (uint64_t)1 << 63,
        UINT64_MAX,
    };
    struct draft draft = good_draft();
    struct bytes good = encode(&draft);

    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        for (size_t layer = 0; layer < 3; layer++) {
            uint8_t *at = good.data + 72 + 32 * layer;
            uint8_t kept[32];

            memcpy(kept, at, sizeof(kept));
            put_le(at + 24, figures[i], 8); /* lines */
            seal(good.data, good.len);
            assert_load(BLOOM_CORRUPT, good.data, good.len);
            put_le(at, figures[i], 8); /* a capacity to match */
            put_le(at + 8, figures[i], 8);
            seal(good.data, good.len);
            assert_load(BLOOM_CORRUPT, good.data, good.len);
            memcpy(at, kept, sizeof(kept));
            put_le(at + 16, figures[i], 4); /* stripes */
            put_le(at + 24, figures[i], 8);
            seal(good.data, good.len);
            assert_load(BLOOM_CORRUPT, good.data, good.len);
            memcpy(at, kept, sizeof(kept));
        }
    }
    seal(good.data, good.len);
    assert_load(BLOOM_OK, good.data, good.len);
    free(good.data);
}

/* The head of a chain of LAYERS by the formulas, whatever its size. */
static enum bloom_status
check_long_head(uint64_t capacity, uint32_t expansion, uint32_t layers)
{
    uint8_t *head = calloc(1, 72 + 32 * (size_t)layers);
    struct codec_head read;
    enum bloom_status status;

    assert_non_null(head);
    memcpy(head, "BLMY\1\0\1", 8);
    put_le(head + 8, expansion, 4);
    put_le(head + 12, layers, 4);
    put_double(head + 16, 0.9);
    put_double(head + 24, 0.9999);
    for (uint32_t i = 0; i < layers; i++) {
        uint8_t *at = head + 72 + 32 * (size_t)i;
        struct geometry geometry =
            sizing_geometry(capacity, sizing_layer_rate(0.9, 0.9999, i));

        put_le(at, capacity, 8);
        put_le(at + 8, capacity, 8);
        put_le(at + 16, geometry.stripes, 4);
        put_le(at + 24, geometry.lines, 8);
        capacity *= expansion;
    }
    status = codec_read_head(head, 72 + 32 * (size_t)layers, &read);
    if (status == BLOOM_OK) {
        status = codec_check_head(&read);
    }
    free(head);
    return status;
}

TEST(a_head_is_bounded_even_if_no_machine_could_hold_its_lines)
{
    const uint64_t two_to_61 = (uint64_t)1 << 61;

    assert_int_equal(BLOOM_OK, check_long_head(1, 1, BLOOM_LAYERS_MAX));
    assert_int_equal(BLOOM_CORRUPT,
                     check_long_head(1, 1, BLOOM_LAYERS_MAX + 1));
    assert_int_equal(BLOOM_OK, check_long_head(INT64_MAX, 1, 1));
    assert_int_equal(BLOOM_CORRUPT, check_long_head(two_to_61 * 4, 1, 1));
    assert_int_equal(BLOOM_OK, check_long_head(two_to_61, 2, 2));
    assert_int_equal(BLOOM_CORRUPT, check_long_head(two_to_61, 2, 3));
    assert_int_equal(BLOOM_CORRUPT, check_long_head(two_to_61, 8, 2));
    /* All capacities together have to be a number too. */
    assert_int_equal(BLOOM_OK, check_long_head(two_to_61, 1, 7));
    assert_int_equal(BLOOM_CORRUPT, check_long_head(two_to_61, 1, 8));
}

TEST(newer_formats_are_told_apart_from_damage)
{
    struct bytes dump;
    struct draft newer = good_draft();

    ASSERT_DRAFT(BLOOM_VERSION, draft.version = 2);
    ASSERT_DRAFT(BLOOM_VERSION, draft.version = 0x100);
    ASSERT_DRAFT(BLOOM_VERSION, draft.version = UINT16_MAX);
    ASSERT_DRAFT(BLOOM_VERSION, draft.kind = BLOOM_KINDS + 1);
    ASSERT_DRAFT(BLOOM_VERSION, draft.kind = 255);
    ASSERT_DRAFT(BLOOM_VERSION, draft.flags = 1);
    ASSERT_DRAFT(BLOOM_VERSION, draft.flags = 0x20);
    ASSERT_DRAFT(BLOOM_VERSION, (draft.kind = 3, draft.flags = 0x40));
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.flags = 0x40); /* no fingerprint */
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.flags = 0x80); /* no ranges */
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.kind = 2);     /* longer layers */
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.version = 0);
    ASSERT_DRAFT(BLOOM_CORRUPT, draft.kind = 0);

    /* Nothing else of a newer version has to make sense here. */
    ASSERT_DRAFT(BLOOM_VERSION, (draft.version = 2, draft.layers = 0));
    newer.version = 2;
    dump = encode(&newer);
    for (size_t len = 0; len < dump.len; len++) {
        assert_load(BLOOM_CORRUPT, dump.data, len);
    }
    dump.data[100] ^= 1;
    assert_load(BLOOM_CORRUPT, dump.data, dump.len);
    seal(dump.data, 16);
    assert_load(BLOOM_VERSION, dump.data, 16);
    free(dump.data);
}

TEST(the_head_can_be_read_alone)
{
    struct draft draft = good_draft();
    struct bytes dump = encode(&draft);
    const size_t head_bytes = 72 + 3 * 32;
    struct codec_head head;
    struct codec_layer layer;

    memset(&head, 0x77, sizeof(head));
    for (size_t len = 0; len <= head_bytes; len++) {
        uint8_t *prefix = malloc(len);

        assert_true(prefix != NULL || len == 0);
        if (len > 0) {
            memcpy(prefix, dump.data, len);
        }
        if (len < head_bytes) {
            struct codec_head before = head;

            assert_int_equal(BLOOM_CORRUPT,
                             codec_read_head(prefix, len, &head));
            assert_memory_equal(&before, &head, sizeof(head));
            free(prefix);
            continue;
        }
        assert_int_equal(BLOOM_OK, codec_read_head(prefix, len, &head));
        assert_int_equal(BLOOM_OK, codec_check_head(&head));
        codec_get_layer(&head, 2, &layer);
        free(prefix);
    }
    assert_int_equal(1600, layer.capacity);
    assert_int_equal(700, layer.items);
    assert_int_equal(3, head.layers);
    assert_int_equal(draft.incarnation, head.incarnation);
    assert_int_equal(head_bytes, head.head_bytes);
    assert_int_equal(dump.len, head.total_bytes);
    assert_int_equal(dump.len - head_bytes - 8, head.line_bytes);
    assert_int_equal(400, head.params.capacity);
    dump.data[4] = 2;
    assert_int_equal(BLOOM_VERSION, codec_read_head(dump.data, 8, &head));
    free(dump.data);
}
