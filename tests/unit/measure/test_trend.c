/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/trend.h"

#include "../test.h"

static const uint64_t SECOND = 1000000000;

static void
count(struct stats_histogram *times, uint64_t ns, uint64_t calls)
{
    times->bucket[stats_bucket(ns)] += calls;
    times->count += calls;
}

TEST(a_point_is_what_happened_since_the_last_one)
{
    static struct trend trend;
    struct stats_histogram times = { 0 };
    const struct trend_point *point;

    count(&times, 1000, 77);
    assert_true(trend_is_due(&trend, SECOND));
    trend_take(&trend, SECOND, 77, &times);
    assert_int_equal(trend.count, 0);
    assert_false(trend_is_due(&trend, 6 * SECOND - 1));
    assert_true(trend_is_due(&trend, 6 * SECOND));
    count(&times, 100, 98);
    count(&times, 5000, 2);
    trend_take(&trend, 6 * SECOND, 177, &times);
    assert_int_equal(trend.count, 1);
    point = trend_at(&trend, 0);
    assert_float_equal(point->per_second, 20, 1e-9);
    assert_in_range(point->p50_ns, 100, 103);
    assert_in_range(point->p99_ns, 5000, 5200);
    trend_take(&trend, 11 * SECOND, 177, &times);
    assert_float_equal(trend_at(&trend, 1)->per_second, 0, 1e-9);
    assert_int_equal(trend_at(&trend, 1)->p50_ns, 0);
    assert_int_equal(trend_at(&trend, 1)->p99_ns, 0);
}

TEST(a_reset_counts_from_zero)
{
    static struct trend trend;
    struct stats_histogram times = { 0 };

    count(&times, 1000, 100);
    trend_take(&trend, SECOND, 1000, &times);
    times = (struct stats_histogram){ 0 };
    count(&times, 100, 10);
    trend_take(&trend, 6 * SECOND, 10, &times);
    assert_float_equal(trend_at(&trend, 0)->per_second, 2, 1e-9);
    assert_in_range(trend_at(&trend, 0)->p99_ns, 100, 103);
}

TEST(the_axis_is_one_of_time)
{
    static struct trend trend;
    struct stats_histogram times = { 0 };

    trend_take(&trend, SECOND, 0, &times);
    trend_take(&trend, 6 * SECOND, 5, &times);
    trend_take(&trend, 22 * SECOND, 21, &times); /* two are missing */
    assert_int_equal(trend.count, 4);
    assert_true(trend_at(&trend, 1)->per_second < 0);
    assert_true(trend_at(&trend, 2)->per_second < 0);
    assert_float_equal(trend_at(&trend, 3)->per_second, 1, 1e-9);
    for (uint64_t i = 1; i <= TREND_POINTS; i++) {
        trend_take(&trend, (22 + 5 * i) * SECOND, 21 + 5 * i * i, &times);
    }
    assert_int_equal(trend.count, TREND_POINTS);
    assert_float_equal(trend_at(&trend, 0)->per_second, 1, 1e-9);
    assert_float_equal(trend_at(&trend, TREND_POINTS - 1)->per_second,
                       2 * TREND_POINTS - 1, 1e-6);
    trend_take(&trend, 1000000 * SECOND, 0, &times);
    assert_true(trend_at(&trend, TREND_POINTS - 2)->per_second < 0);
}
