/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sizes and rates: golden values, the fast root against plain bisection, the
 * closed forms against direct sums.
 */
#include "core/sizing.h"

#include <float.h>
#include <math.h>

#include "../test.h"
#include "help.h"

/* The sum of core/sizing.h by its definition: over the number of items that
 * share the line. */
static long double
direct_stripe_rate(long double load)
{
    long double poisson = expl(-load);
    long double rate = 0;

    for (int items = 1; items < 4 * (int)load + 200; items++) {
        poisson *= load / items;
        rate += poisson * powl(1 - powl(63.0L / 64, items), 8);
    }
    return rate;
}

/* 80 rounds of bisection on the closed form, in extended precision. */
static uint64_t
lines_by_bisection(uint64_t capacity, double rate)
{
    static const double choose[] = { 1, 8, 28, 56, 70, 56, 28, 8, 1 };
    double target = pow(0.95 * rate, 1.0 / sizing_stripes(rate));
    long double low = 1e-3L;
    long double high = 4096;

    for (int round = 0; round < 80; round++) {
        long double middle = (low + high) / 2;
        long double sum = 0;

        for (int i = 0; i <= 8; i++) {
            long double term = (long double)choose[i] *
                               expl(-middle * (1 - powl(63.0L / 64, i)));

            sum += i % 2 == 0 ? term : -term;
        }
        if (sum <= (long double)target) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (uint64_t)ceill((long double)capacity / low);
}

static void
assert_near(double expected, double actual, double relative)
{
    if (fabs(actual - expected) > relative * fabs(expected)) {
        fail_msg("expected %.17g, got %.17g", expected, actual);
    }
}

/* As the crate that valkey-bloom is made of says. */
TEST(a_classic_filter_has_so_many_bytes)
{
    static const struct {
        uint64_t capacity;
        double rate;
        uint64_t bytes;
    } rows[] = {
        { 100, 0.01, 120 },    { 200, 0.005, 276 },
        { 400, 0.0025, 624 },  { 1000, 0.01, 1199 },
        { 1000, 0.001, 1798 }, { 10000, 0.001, 17972 },
        { 1000, 0.5, 181 },    { 1, 0.01, 2 },
        { 1, 0.999, 1 },       { INT64_MAX, 1e-300, INT64_MAX },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(rows[i].bytes,
                         sizing_classic_bytes(rows[i].capacity, rows[i].rate));
    }
}

TEST(a_hundred_items_at_one_percent_are_two_lines)
{
    struct geometry geometry = sizing_geometry(100, 0.01);
    uint64_t bytes = 0;

    assert_int_equal(1, geometry.stripes);
    assert_int_equal(2, geometry.lines);
    assert_true(sizing_bytes(geometry, &bytes));
    assert_int_equal(128, bytes);
}

TEST(stripes_grow_by_one_every_three_decades)
{
    assert_int_equal(1, sizing_stripes(0.999));
    assert_int_equal(1, sizing_stripes(0.01));
    assert_int_equal(1, sizing_stripes(1e-3));
    assert_int_equal(2, sizing_stripes(0.00099));
    assert_int_equal(2, sizing_stripes(1e-6));
    assert_int_equal(3, sizing_stripes(0.9e-6));
    assert_int_equal(3, sizing_stripes(1e-9));
    assert_int_equal(103, sizing_stripes(DBL_MIN));
}

TEST(the_load_for_a_rate_has_that_rate)
{
    for (int i = 0; i < 103; i++) {
        double rate = 9e-4 * pow(1.07, i);

        assert_near(rate, (double)direct_stripe_rate(sizing_load(rate)), 1e-11);
    }
    assert_near(50.697, (double)sizing_load(0.01), 1e-5);
    assert_near(32.560, (double)sizing_load(0.001), 1e-4);
    assert_near(87.087, (double)sizing_load(0.1), 1e-5);
}

TEST(the_fast_root_agrees_with_bisection_to_the_last_line)
{
    uint64_t rng = test_seed();
    unsigned rounds = test_times(4000);

    for (unsigned i = 0; i < rounds; i++) {
        double rate = pow(10, -12 * test_random_unit(&rng)) * 0.9999;
        uint64_t capacity = 1 + (test_random(&rng) >> (24 + i % 40));
        uint64_t expected = lines_by_bisection(capacity, rate);
        struct geometry geometry = sizing_geometry(capacity, rate);

        if (geometry.lines != expected) {
            fail_msg("capacity %llu rate %.17g: %llu lines, bisection %llu",
                     (unsigned long long)capacity, rate,
                     (unsigned long long)geometry.lines,
                     (unsigned long long)expected);
        }
    }
}

TEST(extreme_rates_have_a_geometry)
{
    static const double rates[] = { DBL_MIN, 1e-300, 1e-15,
                                    0.5,     0.9,    1 - DBL_EPSILON };

    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        struct geometry geometry = sizing_geometry(1000, rates[i]);

        assert_int_equal(lines_by_bisection(1000, rates[i]), geometry.lines);
        assert_true(sizing_exact_rate(1000, geometry) <= rates[i]);
    }
    assert_int_equal(1, sizing_geometry(1, 0.5).lines);
}

TEST(the_largest_capacity_is_counted_but_not_representable)
{
    struct geometry geometry = sizing_geometry(INT64_MAX, 0.01);
    uint64_t bytes = 7;

    assert_true(geometry.lines > (uint64_t)1 << 57);
    assert_false(sizing_bytes(geometry, &bytes));
    assert_int_equal(7, bytes);
    geometry.lines = INT64_MAX / 64;
    geometry.stripes = 1;
    assert_true(sizing_bytes(geometry, &bytes));
    geometry.lines++;
    assert_false(sizing_bytes(geometry, &bytes));
    geometry.stripes = UINT32_MAX;
    assert_false(sizing_bytes(geometry, &bytes));
    geometry.stripes = 0;
    assert_false(sizing_bytes(geometry, &bytes));
}

/* Figures of independent simulations and of a direct binomial sum. */
TEST(exact_rates_match_known_values)
{
    assert_near(0.00856, sizing_exact_rate(100, (struct geometry){ 2, 1, 0 }),
                1e-3);
    assert_near(0.00981,
                sizing_exact_rate(10000, (struct geometry){ 198, 1, 0 }), 1e-3);
    assert_near(7.325e-5, sizing_exact_rate(100, (struct geometry){ 2, 2, 0 }),
                1e-3);
    assert_near(9.954e-6, sizing_exact_rate(300, (struct geometry){ 5, 3, 0 }),
                1e-3);
    assert_near(1, sizing_exact_rate(1000000, (struct geometry){ 1, 1, 0 }),
                1e-9);
    assert_true(sizing_exact_rate(1, (struct geometry){ 1, 1, 0 }) < 1e-12);
}

TEST(every_native_geometry_keeps_its_rate_and_is_accepted)
{
    uint64_t rng = test_seed() + 1;

    for (unsigned i = 0; i < test_times(5000); i++) {
        double rate = pow(10, -10 * test_random_unit(&rng)) * 0.9999;
        uint64_t capacity = 1 + (test_random(&rng) >> (20 + i % 44));
        struct geometry geometry = sizing_geometry(capacity, rate);

        assert_true(sizing_exact_rate(capacity, geometry) <= rate);
        assert_true(sizing_acceptable(capacity, rate, geometry));
        geometry.lines++;
        assert_true(sizing_acceptable(capacity, rate, geometry));
        geometry.lines++;
        assert_false(sizing_acceptable(capacity, rate, geometry));
    }
}

TEST(a_stored_geometry_that_breaks_the_rate_is_refused)
{
    struct geometry good = sizing_geometry(100000, 0.01);
    struct geometry bad = good;

    bad.lines = good.lines * 95 / 100;
    assert_false(sizing_acceptable(100000, 0.01, bad));
    bad.lines = 0;
    assert_false(sizing_acceptable(100000, 0.01, bad));
    bad = good;
    bad.stripes = 2;
    assert_false(sizing_acceptable(100000, 0.01, bad));
    bad.stripes = 0;
    assert_false(sizing_acceptable(100000, 0.01, bad));
}

/* r = 1; while n: if n odd r *= t; n /= 2; t *= t: the roundings matter. */
TEST(layer_rates_are_products_in_a_fixed_order)
{
    double t = 0.75;
    double t2 = t * t;
    double t4 = t2 * t2;

    assert_true(sizing_layer_rate(0.01, t, 0) == 0.01);
    assert_true(sizing_layer_rate(0.01, t, 1) == 0.01 * t);
    assert_true(sizing_layer_rate(0.01, t, 5) == 0.01 * (t * t4));
    assert_true(sizing_layer_rate(0.01, t, 7) == 0.01 * (t * t2 * t4));
    assert_true(sizing_layer_rate(0.01, 0.5, 1015) > DBL_MIN);
    assert_true(sizing_layer_rate(0.01, 0.5, 1016) <= DBL_MIN);
}

/* Of what a thread remembers no answer depends on. */
TEST(a_geometry_does_not_depend_on_those_before)
{
    enum { CAPACITIES = 16, RATES = 16, PAIRS = CAPACITIES * RATES };
    struct geometry seen[PAIRS];
    uint64_t random = test_seed();
    double rates[RATES];

    for (unsigned i = 0; i < RATES; i++) {
        rates[i] = pow(10, -0.3 - 5 * test_random_unit(&random));
    }
    for (unsigned i = 0; i < PAIRS; i++) {
        uint64_t capacity = (uint64_t)100 << (i / RATES);

        seen[i] = sizing_geometry(capacity, rates[i % RATES]);
        assert_int_equal(seen[i].stripes, sizing_stripes(rates[i % RATES]));
        assert_in_range(lines_by_bisection(capacity, rates[i % RATES]),
                        seen[i].lines - 1, seen[i].lines + 1);
    }
    for (unsigned i = 0; i < 10000; i++) {
        unsigned at = (unsigned)test_random_below(&random, PAIRS);
        struct geometry again =
            sizing_geometry((uint64_t)100 << (at / RATES), rates[at % RATES]);

        assert_int_equal(seen[at].lines, again.lines);
        assert_int_equal(seen[at].stripes, again.stripes);
    }
}
