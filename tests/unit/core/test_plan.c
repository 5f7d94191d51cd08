/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sums and projections: how far a filter gets, and what stops it there.
 */
#include "core/plan.h"

#include "../test.h"
#include "core/bloom.h"
#include "help.h"

#define LIMIT_DEFAULT ((uint64_t)128 << 20)

TEST(slots_double)
{
    static const uint32_t slots[] = { 0, 0, 2, 4, 4, 8, 8, 8, 8, 16 };

    for (uint32_t count = 0; count < 10; count++) {
        assert_int_equal(slots[count], plan_slots(count));
    }
    assert_int_equal(BLOOM_LAYERS_MAX, plan_slots(BLOOM_LAYERS_MAX));
    assert_int_equal(0, plan_chain_bytes(1));
    assert_int_equal(24 + 4 * 40, plan_chain_bytes(3));
    assert_int_equal(72, plan_struct_bytes(false, 1));
    assert_int_equal(72 + 40, plan_struct_bytes(true, 1));
    assert_int_equal(72 + 40 + 24 + 2 * 40, plan_struct_bytes(true, 2));
}

TEST(a_size_meets_its_limit_to_the_byte)
{
    uint64_t bytes = 7;

    assert_false(plan_size(false, 1, 128, 199, &bytes));
    assert_false(plan_size(false, 1, 0, 71, &bytes));
    assert_false(plan_size(false, 1, INT64_MAX, UINT64_MAX, &bytes));
    assert_false(plan_size(false, 1, UINT64_MAX, UINT64_MAX, &bytes));
    assert_int_equal(7, bytes);
    assert_true(plan_size(false, 1, 128, 200, &bytes));
    assert_int_equal(200, bytes);
    assert_true(plan_size(false, 1, INT64_MAX - 72, UINT64_MAX, &bytes));
    assert_int_equal(INT64_MAX, bytes);
}

TEST(default_filters_scale_to_26214300_items_in_128_mib)
{
    struct bloom_params params = params_of(100, 0.01, 2);
    uint64_t total = 0;

    assert_int_equal(BLOOM_OK,
                     bloom_project(&params, LIMIT_DEFAULT, 26214300, &total));
    assert_int_equal(26214300, total);
    assert_int_equal(BLOOM_LIMIT,
                     bloom_project(&params, LIMIT_DEFAULT, 26214301, NULL));
}

/* The figures of valkey-bloom, whose layers are smaller by a few percent. */
TEST(scaled_capacities_are_those_of_valkey_bloom)
{
    static const struct {
        uint64_t capacity;
        double rate;
        uint64_t total;
        uint32_t expansion;
        enum bloom_status stop;
    } rows[] = {
        { 100, 0.01, 26214300, 2, BLOOM_LIMIT },
        { 10000, 0.001, 20470000, 2, BLOOM_LIMIT },
        { 100, 1e-8, 13107100, 2, BLOOM_LIMIT },
        { 100, 0.01, 101600, 1, BLOOM_RATE_ZERO },
        { 2000, 0.5, 32766000, 2, BLOOM_LIMIT },
        { 1000, 0.01, 32767000, 2, BLOOM_LIMIT },
        { 100000, 0.01, 51100000, 2, BLOOM_LIMIT },
        { 1000, 0.01, 21845000, 4, BLOOM_LIMIT },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bloom_params params =
            params_of(rows[i].capacity, rows[i].rate, rows[i].expansion);
        uint64_t total = 0;

        assert_int_equal(BLOOM_OK,
                         bloom_project(&params, LIMIT_DEFAULT, 0, &total));
        assert_int_equal(rows[i].total, total);
        assert_int_equal(rows[i].stop, bloom_project(&params, LIMIT_DEFAULT,
                                                     rows[i].total + 1, NULL));
    }
}

TEST(projections_know_every_reason_to_stop)
{
    struct bloom_params params = params_of(100, 0.01, 0);
    uint64_t total = 0;

    assert_int_equal(BLOOM_OK,
                     bloom_project(&params, LIMIT_DEFAULT, 0, &total));
    assert_int_equal(100, total);
    assert_int_equal(BLOOM_FULL,
                     bloom_project(&params, LIMIT_DEFAULT, 101, NULL));

    params = params_of((uint64_t)1 << 33, 0.9, UINT32_MAX);
    total = 7;
    assert_int_equal(BLOOM_OVERFLOW,
                     bloom_project(&params, INT64_MAX, 0, &total));
    assert_int_equal(7, total);
    assert_int_equal(BLOOM_OK, bloom_project(&params, INT64_MAX, 1, &total));
    assert_int_equal((uint64_t)1 << 33, total);

    params = params_of(1, 0.5, 1);
    params.tightening = 0.99999;
    assert_int_equal(BLOOM_MAX_LAYERS,
                     bloom_project(&params, LIMIT_DEFAULT, 20000, NULL));
    assert_int_equal(BLOOM_OK,
                     bloom_project(&params, LIMIT_DEFAULT, 0, &total));
    assert_int_equal(BLOOM_LAYERS_MAX, total);

    params = params_of(100, 0.01, 2);
    assert_int_equal(BLOOM_OK, bloom_project(&params, 100, 0, &total));
    assert_int_equal(0, total);
}

TEST(what_is_odd_counts_in_a_projection)
{
    struct bloom_params params = params_of(100, 0.01, 2);
    uint64_t total;

    assert_false(plan_is_odd(&params));
    assert_int_equal(BLOOM_OK, bloom_project(&params, 200, 0, &total));
    assert_int_equal(100, total);
    params.seed[0] = 1;
    assert_true(plan_is_odd(&params));
    assert_int_equal(BLOOM_OK, bloom_project(&params, 239, 0, &total));
    assert_int_equal(0, total);
    assert_int_equal(BLOOM_OK, bloom_project(&params, 240, 0, &total));
    assert_int_equal(100, total);
    bloom_seed(7, params.seed);
    assert_false(plan_is_odd(&params));
    params.tightening = 0.51;
    assert_true(plan_is_odd(&params));
}
