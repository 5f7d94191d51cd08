/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sums and projections: how far a filter gets, and what stops it there.
 */
#include "core/plan.h"

#include <math.h>

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
    assert_int_equal(0, plan_chain_bytes(0, 1));
    assert_int_equal(24 + 4 * 40, plan_chain_bytes(0, 3));
    assert_int_equal(72, plan_struct_bytes(0, 1));
    assert_int_equal(72 + 40, plan_struct_bytes(PLAN_ODD, 1));
    assert_int_equal(72 + 40 + 24 + 2 * 40, plan_struct_bytes(PLAN_ODD, 2));
}

TEST(a_size_is_structs_and_lines)
{
    uint64_t bytes = 7;

    assert_false(plan_size(0, 1, INT64_MAX, &bytes));
    assert_false(plan_size(0, 1, UINT64_MAX, &bytes));
    assert_int_equal(7, bytes);
    assert_true(plan_size(0, 1, 128, &bytes));
    assert_int_equal(200, bytes);
    assert_true(plan_size(0, 1, INT64_MAX - 72, &bytes));
    assert_int_equal(INT64_MAX, bytes);
}

/* A loaded layer may have any capacity, and few bits. */
TEST(a_limit_is_on_the_own_size_of_kind_redisbloom)
{
    struct bloom_params params = params_of(2058, 0.005, 2);

    params.kind = BLOOM_REDISBLOOM;
    assert_true(plan_stored_fits(&params, 6, 2224, 2224));
    assert_false(plan_stored_fits(&params, 6, 2224, 2223));
}

/* 384 is what valkey-bloom says of a default filter. */
TEST(a_limit_is_on_what_the_module_takes)
{
    struct bloom_params params = params_of(100, 0.01, 2);

    assert_int_equal(0, plan_module_layers(&params, 0));
    assert_int_equal(208 + 120, plan_module_layers(&params, 1));
    assert_int_equal(2 * 208 + 120 + 276, plan_module_layers(&params, 2));
    assert_true(plan_stored_fits(&params, 1, 200, 384));
    assert_false(plan_stored_fits(&params, 1, 200, 383));
    /* The slot of the second layer is not counted until it is there. */
    assert_true(plan_stored_fits(&params, 2, 652, 892 - 24));
    assert_false(plan_stored_fits(&params, 2, 652, 892 - 25));
    assert_true(plan_stored_fits(&params, 3, 1000, 1724));
    assert_false(plan_stored_fits(&params, 3, 1000, 1723));

    assert_true(plan_fits(1250, 1000, 1000, 1000)); /* a quarter more */
    assert_false(plan_fits(1250, 1000, 1000, 999));
    assert_false(plan_fits(1251, 1000, 1000, 1250)); /* beyond: our own size */
    assert_true(plan_fits(1251, 1000, 1000, 1251));
    assert_true(plan_fits(10, 1000, 1000, 1000));
    assert_false(plan_fits(10, 1000, 1000, 999));

    params = params_of(BLOOM_CAPACITY_MAX, 1e-300, UINT32_MAX);
    assert_int_equal(INT64_MAX, plan_module_layers(&params, 3));
    assert_true(plan_stored_fits(&params, 3, INT64_MAX, INT64_MAX));
    assert_false(plan_stored_fits(&params, 3, INT64_MAX, INT64_MAX - 1));
}

/* Here the slots of 65 and of 129 layers decide whether a filter is as large as
 * in valkey-bloom. */
TEST(a_filter_grows_at_least_as_far_as_projected)
{
    static const struct {
        uint64_t capacity;
        double rate;
        double tightening;
        uint64_t limit;
        uint64_t total;
    } rows[] = {
        { 10, 5.6141919690242721e-05, 0.77058177508643966, 44805, 1500 },
        { 40, 0.0062501816578204618, 0.42612356995184864, 39173, 2640 },
        { 7, 0.050934434638650154, 0.72375526968591331, 38345, 931 },
        { 11, 0.12525324118987657, 0.65944115970158346, 41629, 1474 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bloom_params params =
            params_of(rows[i].capacity, rows[i].rate, 1);
        struct plan plan = { 0 };
        struct plan_layer next;
        uint64_t total = 0;

        params.tightening = rows[i].tightening;
        plan.parts = plan_parts(&params);
        assert_int_equal(BLOOM_OK,
                         plan_project(&params, rows[i].limit, 0, &total));
        assert_int_equal(rows[i].total, total);
        while (plan_next(&params, &plan, rows[i].limit, &next) == BLOOM_OK) {
            plan.count++;
            plan.capacity = next.capacity;
            plan.line_bytes += next.line_bytes;
            plan.module_bytes = next.module_bytes;
        }
        assert_in_range(plan.count * rows[i].capacity, total, total + 40);
    }
}

TEST(default_filters_scale_to_26214300_items_in_128_mib)
{
    struct bloom_params params = params_of(100, 0.01, 2);
    uint64_t total = 0;

    assert_int_equal(BLOOM_OK,
                     plan_project(&params, LIMIT_DEFAULT, 26214300, &total));
    assert_int_equal(26214300, total);
    assert_int_equal(BLOOM_LIMIT,
                     plan_project(&params, LIMIT_DEFAULT, 26214301, NULL));
}

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
                         plan_project(&params, LIMIT_DEFAULT, 0, &total));
        assert_int_equal(rows[i].total, total);
        assert_int_equal(rows[i].stop, plan_project(&params, LIMIT_DEFAULT,
                                                    rows[i].total + 1, NULL));
    }
}

/* As measured there, at 128 MiB. */
TEST(the_largest_filter_is_that_of_valkey_bloom)
{
    static const struct {
        uint64_t capacity;
        double rate;
    } rows[] = { { 112022240, 0.01 }, { 74681493, 0.001 } };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bloom_params params =
            params_of(rows[i].capacity, rows[i].rate, 0);
        const struct plan none = { .parts = 0 };
        struct plan_layer next;

        assert_int_equal(BLOOM_OK,
                         plan_next(&params, &none, LIMIT_DEFAULT, &next));
        assert_true(next.size_bytes > LIMIT_DEFAULT);
        params.capacity++;
        assert_int_equal(BLOOM_LIMIT,
                         plan_next(&params, &none, LIMIT_DEFAULT, &next));
    }
}

/* A plan may come from the one before it, which never shows. */
TEST(the_plan_of_a_new_filter_depends_on_its_parameters_alone)
{
    static const struct {
        uint64_t capacity, limit;
        double rate;
        uint8_t seed; /* 1: of 32 bytes that bloom_seed() does not return */
        enum bloom_status status;
    } rows[] = {
        { 100, LIMIT_DEFAULT, 0.01, 0, BLOOM_OK },
        { 100, LIMIT_DEFAULT, 0.01, 0, BLOOM_OK },
        { 100, LIMIT_DEFAULT, 0.01, 1, BLOOM_OK },
        { 100, LIMIT_DEFAULT, 0.01, 0, BLOOM_OK },
        { 100, 10, 0.01, 0, BLOOM_LIMIT },
        { 101, LIMIT_DEFAULT, 0.01, 0, BLOOM_OK },
        { 100000, LIMIT_DEFAULT, 0.01, 0, BLOOM_OK },
        { 100000, LIMIT_DEFAULT, 0.001, 0, BLOOM_OK },
        { 0, LIMIT_DEFAULT, 0.001, 0, BLOOM_INVALID },
        { 0, 0, 0, 0, BLOOM_INVALID },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bloom_params params =
            params_of(rows[i].capacity, rows[i].rate, 2);
        struct plan plan = { 0 };
        struct plan_layer next;
        struct plan_layer found;
        unsigned parts = 0;

        memset(params.seed, 0, sizeof(params.seed));
        params.seed[0] = rows[i].seed;
        assert_int_equal(rows[i].status,
                         plan_first(&params, rows[i].limit, &parts, &found));
        if (rows[i].status == BLOOM_OK) {
            plan.parts = plan_parts(&params);
            assert_int_equal(rows[i].seed > 0 ? PLAN_ODD : 0, parts);
            assert_int_equal(plan.parts, parts);
            assert_int_equal(BLOOM_OK,
                             plan_next(&params, &plan, rows[i].limit, &next));
            assert_int_equal(next.capacity, found.capacity);
            assert_int_equal(next.size_bytes, found.size_bytes);
            assert_int_equal(next.module_bytes, found.module_bytes);
            assert_int_equal(next.geometry.lines, found.geometry.lines);
            assert_int_equal(next.geometry.stripes, found.geometry.stripes);
        }
    }
}

TEST(projections_know_every_reason_to_stop)
{
    struct bloom_params params = params_of(100, 0.01, 0);
    uint64_t total = 0;

    assert_int_equal(BLOOM_OK, plan_project(&params, LIMIT_DEFAULT, 0, &total));
    assert_int_equal(100, total);
    assert_int_equal(BLOOM_FULL,
                     plan_project(&params, LIMIT_DEFAULT, 101, NULL));

    params = params_of((uint64_t)1 << 33, 0.9, UINT32_MAX);
    total = 7;
    assert_int_equal(BLOOM_OVERFLOW,
                     plan_project(&params, INT64_MAX, 0, &total));
    assert_int_equal(7, total);
    assert_int_equal(BLOOM_OVERFLOW,
                     plan_project(&params, INT64_MAX, 1, &total));
    params.expansion = 2;
    assert_int_equal(BLOOM_OK, plan_project(&params, INT64_MAX, 1, &total));
    assert_int_equal((uint64_t)1 << 33, total);

    params = params_of(1, 0.5, 1);
    params.tightening = 0.99999;
    assert_int_equal(BLOOM_MAX_LAYERS,
                     plan_project(&params, LIMIT_DEFAULT, 20000, NULL));
    assert_int_equal(BLOOM_OK, plan_project(&params, LIMIT_DEFAULT, 0, &total));
    assert_int_equal(BLOOM_LAYERS_MAX, total);

    params = params_of(100, 0.01, 2);
    assert_int_equal(BLOOM_OK, plan_project(&params, 100, 0, &total));
    assert_int_equal(0, total);
}

/* What is odd counts in our own size, which decides at a rate of 0.5. */
TEST(odd_parameters_count_where_our_size_decides)
{
    struct bloom_params params = params_of(100000, 0.5, 2);
    uint64_t lines = sizing_geometry(100000, 0.5).lines * 64;
    uint64_t total;

    assert_int_equal(0, plan_parts(&params));
    assert_int_equal(BLOOM_OK, plan_project(&params, lines + 72, 0, &total));
    assert_int_equal(100000, total);
    params.seed[0] = 1;
    assert_int_equal(PLAN_ODD, plan_parts(&params));
    assert_int_equal(BLOOM_OK, plan_project(&params, lines + 111, 0, &total));
    assert_int_equal(0, total);
    assert_int_equal(BLOOM_OK, plan_project(&params, lines + 112, 0, &total));
    assert_int_equal(100000, total);
    bloom_seed(7, params.seed);
    assert_int_equal(0, plan_parts(&params));
    params.tightening = 0.51;
    assert_int_equal(PLAN_ODD, plan_parts(&params));
}

/* ---- valkey-bloom by its own formulas ------------------------------------
 *
 * Written from what is known of valkey-bloom 1.0.1, and from nothing of ours:
 * each answer under a limit has to be the same. */

static double
module_power(double base, uint32_t exponent)
{
    double result = 1;

    for (;;) {
        if ((exponent & 1) != 0) {
            result *= base;
        }
        exponent /= 2;
        if (exponent == 0) {
            return result;
        }
        base *= base;
    }
}

static double
module_filter_bytes(double capacity, double rate)
{
    return 24 + 184 + ceil(capacity * log(rate) / (-8 * M_LN2 * M_LN2));
}

enum module_end { END_TARGET, END_MEMORY, END_RATE, END_OVERFLOW };

/* target 0: as far as it gets. */
static enum module_end
module_project(const struct bloom_params *params, double limit, double target,
               double *ret_total, uint32_t *ret_count)
{
    double capacity = (double)params->capacity;
    double memory = 0;
    double total = 0;
    uint32_t n = 0;
    enum module_end end = END_TARGET;

    while (!(target > 0 && total >= target)) {
        double rate = params->error_rate * module_power(params->tightening, n);
        double bytes = module_filter_bytes(capacity, rate);
        double slots = 4;

        while (slots < n + 1) {
            slots *= 2;
        }
        if (!(rate > 2.2250738585072014e-308)) {
            end = END_RATE;
            break;
        }
        if (48 + 8 * (n == 0 ? 1 : slots) + memory + bytes > limit) {
            end = END_MEMORY;
            break;
        }
        memory += bytes;
        total += capacity;
        capacity *= params->expansion;
        n++;
        if (capacity >= 0x1p63) {
            end = END_OVERFLOW;
            break;
        }
    }
    *ret_total = total;
    *ret_count = n;
    return end;
}

/* Layers that it really grows, whose slots are counted once they are there. */
static uint32_t
module_layers(const struct bloom_params *params, double limit, double *ret_last)
{
    double capacity = (double)params->capacity;
    double memory = 0;
    uint32_t n = 0;

    for (;; n++) {
        double rate = params->error_rate * module_power(params->tightening, n);
        double bytes = module_filter_bytes(capacity, rate);
        double slots = n < 2 ? 1 : 4;

        while (slots < n) {
            slots *= 2;
        }
        if (rate <= 2.2250738585072014e-308 || capacity >= 0x1p63 ||
            48 + 8 * slots + memory + bytes > limit) {
            return n;
        }
        memory += bytes;
        *ret_last = capacity;
        capacity *= params->expansion;
    }
}

static struct bloom_params
random_params(uint64_t *rng)
{
    struct bloom_params params =
        params_of((uint64_t)exp(test_random_unit(rng) * log(2e8)),
                  0.05 * pow(1e-12, test_random_unit(rng)),
                  1 + (uint32_t)test_random_below(rng, 8));

    if (test_random_below(rng, 8) == 0) {
        params.expansion =
            (uint32_t)exp(test_random_unit(rng) * log(UINT32_MAX));
    }
    params.tightening = 0.05 + 0.9 * test_random_unit(rng);
    if (test_random_below(rng, 2) == 0) {
        params.tightening = 0.5;
    }
    return params;
}

/* As grow() asks, but without the lines. */
static uint32_t
layers_planned(const struct bloom_params *params, uint64_t limit)
{
    struct plan plan = { .parts = plan_parts(params) };
    uint64_t size_bytes = 0;
    struct plan_layer next;

    while (plan_next(params, &plan, limit, &next) == BLOOM_OK) {
        plan.count++;
        plan.capacity = next.capacity;
        plan.line_bytes += next.line_bytes;
        plan.module_bytes = next.module_bytes;
        size_bytes = next.size_bytes;
    }
    assert_int_equal(plan.module_bytes, plan_module_layers(params, plan.count));
    assert_true(plan.count == 0 ||
                plan_stored_fits(params, plan.count, size_bytes, limit));
    return plan.count;
}

static void
compare_with_module(const struct bloom_params *params, uint64_t limit,
                    unsigned *left_out)
{
    static const enum bloom_status statuses[] = { BLOOM_OK, BLOOM_LIMIT,
                                                  BLOOM_RATE_ZERO,
                                                  BLOOM_OVERFLOW };
    uint64_t total = UINT64_MAX;
    double reached = 0;
    double last = 0;
    uint32_t count = 0;
    uint32_t layers = module_layers(params, (double)limit, &last);
    enum module_end end =
        module_project(params, (double)limit, 0, &reached, &count);

    if (layers >= BLOOM_LAYERS_MAX) {
        (*left_out)++;
        return;
    }
    assert_int_equal(layers, layers_planned(params, limit));
    if (end == END_OVERFLOW) {
        assert_int_equal(BLOOM_OVERFLOW, plan_project(params, limit, 0, NULL));
        return;
    }
    assert_int_equal(BLOOM_OK, plan_project(params, limit, 0, &total));
    assert_int_equal((uint64_t)reached, total);
    assert_int_equal(statuses[end],
                     plan_project(params, limit, total + 1, NULL));
    if (total > 0) {
        assert_int_equal(BLOOM_OK, plan_project(params, limit, total, NULL));
    }
}

enum { ROUNDS = 10000 };

TEST(filters_that_fit_in_valkey_bloom_fit_here)
{
    uint64_t rng = test_seed() + 4;
    unsigned left_out = 0;

    for (unsigned round = 0; round < test_times(ROUNDS) + left_out; round++) {
        struct bloom_params params = random_params(&rng);

        compare_with_module(&params, LIMIT_DEFAULT, &left_out);
    }
}

/* Hundreds of layers of a handful of items each, of rates down to 1e-300, take
 * more than a quarter more here: a layer of 100 stripes has 100 lines at least.
 * They reach a limit only if that is low. */
TEST(filters_that_fit_in_valkey_bloom_fit_here_under_any_limit)
{
    uint64_t rng = test_seed() + 5;
    unsigned left_out = 0;

    for (unsigned round = 0; round < test_times(ROUNDS) + left_out; round++) {
        struct bloom_params params = random_params(&rng);
        uint64_t limit = (uint64_t)(1e6 * pow(1e4, test_random_unit(&rng)));

        params.expansion += params.expansion == 1;
        compare_with_module(&params, limit, &left_out);
    }
}

/* Above a rate of 0.11 an item costs more here, so that our size decides. */
TEST(beyond_a_quarter_more_the_size_itself_is_limited)
{
    uint64_t rng = test_seed() + 6;

    for (unsigned round = 0; round < 1000; round++) {
        struct bloom_params params =
            params_of(100000 + test_random_below(&rng, 1000000),
                      0.12 + 0.87 * test_random_unit(&rng), 2);
        uint64_t limit = 100000 + test_random_below(&rng, LIMIT_DEFAULT);
        struct plan plan = { .parts = 0 };
        struct plan_layer next;

        if (plan_next(&params, &plan, limit, &next) == BLOOM_OK) {
            assert_true(next.size_bytes <= limit);
        }
        assert_int_equal(BLOOM_OK,
                         plan_next(&params, &plan, UINT64_MAX, &next));
        assert_true((double)next.size_bytes > 1.25 * (double)next.module_bytes);
    }
}

TEST(the_largest_capacity_fits_and_one_more_does_not)
{
    static const uint64_t limits[] = { 200,     300,       4096,
                                       1 << 20, 134217728, (uint64_t)1 << 40 };

    for (uint32_t kind = 0; kind < BLOOM_KINDS; kind++) {
        for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
            struct bloom_params params = params_of(7, 0.01, 2);
            struct plan none = { 0 };
            struct plan_layer next;
            uint64_t largest;

            set_kind(&params, kind);
            none.parts = plan_parts(&params);
            largest = plan_largest(&params, limits[i]);
            params.capacity = largest;
            assert_true(largest == 0 || plan_next(&params, &none, limits[i],
                                                  &next) == BLOOM_OK);
            params.capacity = largest + 1;
            assert_int_equal(BLOOM_LIMIT,
                             plan_next(&params, &none, limits[i], &next));
        }
    }
}

/* valkey-bloom makes a first layer of such a rate, and says 0. */
TEST(a_rate_that_no_layer_may_have_projects_nothing)
{
    struct bloom_params params = params_of(100, 2.2250738585072014e-308, 2);
    uint64_t total = 1;

    assert_int_equal(BLOOM_OK, plan_project(&params, LIMIT_DEFAULT, 0, &total));
    assert_int_equal(0, total);
    assert_int_equal(BLOOM_RATE_ZERO,
                     plan_project(&params, LIMIT_DEFAULT, 1, NULL));
    params.error_rate = 2.2250738585072019e-308;
    assert_int_equal(BLOOM_OK, plan_project(&params, LIMIT_DEFAULT, 0, &total));
    assert_int_equal(100, total);
}
