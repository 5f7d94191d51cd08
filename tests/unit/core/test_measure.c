/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a filter says of itself, against what lookups of absent items find.
 */
#include "core/measure.h"

#include <math.h>

#include "help.h"

#include "../test.h"

enum { ALL = 1 << 30, SAMPLE = 1 << 16 };

static void
add_number(struct bloom *bloom, uint64_t number)
{
    bool added;

    assert_int_equal(BLOOM_OK,
                     bloom_add(bloom, NULL,
                               bloom_hash(bloom, &number, sizeof(number)),
                               &added));
}

static bool
has_number(const struct bloom *bloom, uint64_t number)
{
    return bloom_contains(bloom, bloom_hash(bloom, &number, sizeof(number)));
}

/* Returns the rate of all layers together. */
static double
rate_of(const struct bloom *bloom, uint64_t lines_max)
{
    double clean = 1;
    struct measured measured;

    for (uint32_t i = 0; measure_layer(bloom, i, lines_max, &measured); i++) {
        clean *= 1 - measured.rate;
    }
    return 1 - clean;
}

/* Fills a filter with numbers, and compares the rate that it tells with the one
 * at which it finds others. */
static void
check_rate(enum bloom_kind kind, uint64_t capacity, double rate, uint64_t items)
{
    enum { ASKED = 2000000 };
    struct bloom_params params = params_of(capacity, rate, 2);
    uint64_t seed = test_seed();
    uint64_t found = 0;
    struct bloom *bloom;
    double measured;
    double told;

    set_kind(&params, kind);
    if (kind == BLOOM_VALKEYBLOOM) {
        bloom_seed(seed, params.seed); /* with 0, its two hashes are equal */
    }
    assert_int_equal(BLOOM_OK, bloom_new(&params, NULL, &bloom));
    for (uint64_t i = 0; i < items; i++) {
        add_number(bloom, seed + i);
    }
    for (uint64_t i = 0; i < ASKED; i++) {
        found += has_number(bloom, seed + items + i);
    }
    measured = (double)found / ASKED;
    told = rate_of(bloom, measure_share(bloom, SAMPLE));
    /* 5 %, and four standard deviations of the lookups. */
    if (fabs(told - measured) > 0.05 * measured + 4 * sqrt(measured / ASKED)) {
        fail_msg("kind %d, %d items: told %g, measured %g", (int)kind,
                 (int)items, told, measured);
    }
    assert_true(fabs(rate_of(bloom, ALL) - told) < 0.03 * told);
    bloom_free(bloom, NULL);
}

TEST(the_rate_of_a_full_layer_is_the_measured_one)
{
    for (int kind = 0; kind < BLOOM_KINDS; kind++) {
        check_rate((enum bloom_kind)kind, 400000, 0.01, 400000);
    }
}

TEST(the_rate_of_several_layers_is_the_measured_one)
{
    for (int kind = 0; kind < BLOOM_KINDS; kind++) {
        check_rate((enum bloom_kind)kind, 40000, 0.02, 200000);
    }
}

TEST(the_rate_of_two_stripes_and_of_half_a_layer_is_the_measured_one)
{
    check_rate(BLOOM_NATIVE, 200000, 0.0009, 200000);
    check_rate(BLOOM_NATIVE, 400000, 0.2, 200000);
}

TEST(an_empty_filter_is_never_wrong)
{
    struct bloom_params params = params_of(1000, 0.01, 2);
    struct measured measured;
    struct bloom *bloom;

    for (int kind = 0; kind < BLOOM_KINDS; kind++) {
        set_kind(&params, (uint32_t)kind);
        assert_int_equal(BLOOM_OK, bloom_new(&params, NULL, &bloom));
        assert_true(measure_layer(bloom, 0, 1, &measured));
        assert_true(measured.rate == 0 && measured.ones == 0); /* NOLINT */
        assert_false(measure_layer(bloom, 1, 1, &measured));
        bloom_free(bloom, NULL);
    }
}

static uint64_t
room_of(const struct bloom *bloom, uint64_t limit_bytes)
{
    struct measure_room room;

    measure_room_begin(&room, bloom, limit_bytes);
    while (measure_room_step(&room)) {
    }
    return room.room;
}

TEST(bits_are_counted_whole_or_estimated)
{
    struct bloom_params params = params_of(100000, 0.01, 2);
    struct measured whole;
    struct measured part;
    struct bloom *bloom;

    assert_int_equal(BLOOM_OK, bloom_new(&params, NULL, &bloom));
    add_number(bloom, test_seed());
    assert_true(measure_layer(bloom, 0, ALL, &whole));
    assert_true(whole.ones == 8 && whole.lines == whole.lines_read);
    for (uint64_t i = 0; i < 50000; i++) {
        add_number(bloom, i);
    }
    assert_true(measure_layer(bloom, 0, ALL, &whole));
    assert_true(measure_layer(bloom, 0, 256, &part));
    assert_int_equal(256, part.lines_read);
    assert_int_equal(whole.bits, part.bits);
    assert_true(fabs(part.ones - whole.ones) < 0.1 * whole.ones);
    bloom_free(bloom, NULL);
}

/* Adds items until one fails, and compares their number with the promise. */
static void
check_room(enum bloom_kind kind, uint32_t expansion, uint64_t limit_bytes)
{
    struct bloom_params params = params_of(100, 0.01, expansion);
    struct fault_heap heap = { 0 };
    struct bloom_env env = fault_env(&heap);
    struct bloom *bloom;
    uint64_t added = 0;

    set_kind(&params, kind);
    env.size_limit_bytes = limit_bytes;
    assert_int_equal(BLOOM_OK, bloom_new(&params, &env, &bloom));
    for (uint64_t i = 0;; i++) {
        uint64_t room = room_of(bloom, limit_bytes);
        uint64_t layers = bloom->count;
        uint64_t layer_room = measure_layer_room(bloom);
        bool is_new = false;
        enum bloom_status status =
            bloom_add(bloom, &env, bloom_hash(bloom, &i, sizeof(i)), &is_new);

        if (status != BLOOM_OK) {
            assert_int_equal(0, room);
            break;
        }
        assert_true(room > 0 || !is_new);
        added += is_new;
        if (is_new) {
            assert_int_equal(room - 1, room_of(bloom, limit_bytes));
            assert_int_equal(layer_room == 0, bloom->count > layers);
        }
    }
    assert_true(added >= 100);
    bloom_free(bloom, &env);
}

TEST(the_room_is_what_adds_find)
{
    for (int kind = 0; kind < BLOOM_KINDS; kind++) {
        check_room((enum bloom_kind)kind, 2, 4000);
        check_room((enum bloom_kind)kind, 1, 4000);
        check_room((enum bloom_kind)kind, 0, 4000);
    }
}

TEST(room_without_a_limit_ends_with_the_numbers)
{
    struct bloom_params params = params_of(1 << 20, 0.01, 1 << 20);
    struct bloom *bloom;

    assert_int_equal(BLOOM_OK, bloom_new(&params, NULL, &bloom));
    assert_true(room_of(bloom, UINT64_MAX) >= (uint64_t)1 << 40);
    bloom_free(bloom, NULL);
}
