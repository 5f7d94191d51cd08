/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The run clock leaves pauses out, and converts times from before them.
 */
#include "base/run_clock.h"

#include "base/clock.h"

#include "../test.h"

#define MS   UINT64_C(1000000)
#define STEP ((uint64_t)RUN_CLOCK_STEP_NS)

/* Reads it every 100 ms until then. */
static uint64_t
run_until(struct run_clock *clock, uint64_t mono_ns)
{
    while (clock->seen_ns + 100 * MS < mono_ns) {
        (void)run_clock_read(clock, clock->seen_ns + 100 * MS);
    }
    return run_clock_read(clock, mono_ns);
}

TEST(the_run_clock_is_the_monotonic_clock_of_a_process_that_runs)
{
    struct run_clock clock = { 0 };

    assert_int_equal(run_clock_read(&clock, 5000 * MS), 5000 * MS);
    assert_int_equal(run_until(&clock, 90000 * MS), 90000 * MS);
    assert_int_equal(clock.count, 0);
}

TEST(the_run_clock_leaves_a_pause_out_but_for_one_step)
{
    struct run_clock clock = { 0 };

    (void)run_clock_read(&clock, 5000 * MS);
    assert_int_equal(run_clock_read(&clock, 16000 * MS), 5000 * MS + STEP);
    assert_int_equal(run_until(&clock, 17000 * MS), 6000 * MS + STEP);
    assert_int_equal(run_clock_read(&clock, 16500 * MS), 6000 * MS + STEP);
}

TEST(times_from_before_a_pause_are_converted)
{
    struct run_clock clock = { 0 };
    uint64_t after;

    (void)run_until(&clock, 5000 * MS);
    (void)run_clock_read(&clock, 5000 * MS);
    (void)run_clock_read(&clock, 16000 * MS);
    (void)run_until(&clock, 20000 * MS);
    (void)run_clock_read(&clock, 80000 * MS);
    after = run_until(&clock, 81000 * MS);
    assert_int_equal(after, 10000 * MS + 2 * STEP);
    assert_int_equal(run_clock_from_mono(&clock, 4000 * MS), 4000 * MS);
    assert_int_equal(run_clock_from_mono(&clock, 10000 * MS), 5000 * MS + STEP);
    assert_int_equal(run_clock_from_mono(&clock, 17000 * MS), 6000 * MS + STEP);
    assert_int_equal(run_clock_from_mono(&clock, 81000 * MS), after);
    assert_int_equal(run_clock_to_mono(&clock, 4000 * MS), 4000 * MS);
    assert_int_equal(run_clock_to_mono(&clock, 6000 * MS + STEP), 17000 * MS);
    assert_int_equal(run_clock_to_mono(&clock, after), 81000 * MS);
}

TEST(conversions_after_more_pauses_than_are_remembered_stay_in_order)
{
    struct run_clock clock = { 0 };
    uint64_t run_ns = 0;
    uint64_t mono_ns = 0;

    for (uint64_t i = 1; i <= 3 * RUN_CLOCK_PAUSES; i++) {
        run_ns = run_clock_read(&clock, i * 1000 * MS);
    }
    assert_int_equal(run_clock_from_mono(&clock, clock.seen_ns), run_ns);
    for (uint64_t at = 0; at <= run_ns; at += 50 * MS) {
        assert_true(run_clock_to_mono(&clock, at) >= mono_ns);
        mono_ns = run_clock_to_mono(&clock, at);
    }
    assert_int_equal(mono_ns / MS, clock.seen_ns / MS);
}

TEST(the_run_clock_of_the_process_goes_on)
{
    uint64_t mono_ns = clock_mono_ns();
    uint64_t first = run_clock_ns();

    while (run_clock_ns() - first < 2 * MS) {
    }
    assert_true(run_clock_since(mono_ns) >= 2 * MS);
    assert_true(run_clock_to_mono_ms(run_clock_ms()) >= mono_ns / MS);
    assert_int_equal(run_clock_to_mono_ms(0), 0);
}
