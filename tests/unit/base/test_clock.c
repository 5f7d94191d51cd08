/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The clocks agree with the C library's and with each other.
 */
#include "base/clock.h"

#include "../test.h"

#include <stdbool.h>
#include <time.h>

TEST(the_monotonic_clock_never_goes_back_and_goes_on)
{
    uint64_t first = clock_mono_ns();
    uint64_t last = first;

    for (int i = 0; i < 100000 || last == first; i++) {
        uint64_t now = clock_mono_ns();

        assert_true(now >= last);
        last = now;
    }
}

TEST(what_never_was_and_what_will_be_is_no_time_ago)
{
    uint64_t ms = clock_mono_ns() / 1000000;

    assert_true(clock_mono_ms() >= ms);
    assert_int_equal(0, clock_ms_since(0));
    assert_int_equal(0, clock_ms_since(clock_mono_ms() + 1000000));
    assert_true(clock_ms_since(1) >= ms - 1);
}

TEST(the_wall_clock_is_the_system_s_in_both_units)
{
    uint64_t low = (uint64_t)time(NULL) - 1; /* time() may lag by a tick */
    uint64_t us = clock_wall_us();
    uint64_t ms = clock_wall_ms();
    uint64_t high = (uint64_t)time(NULL) + 1;

    assert_true(us / 1000000 >= low && us / 1000000 <= high);
    assert_true(ms / 1000 >= low && ms / 1000 <= high);
}

/* The moment lies a little back: the time it had is told, and none that has
 * not come yet then is told of the next one. */
TEST(the_wall_clock_at_a_moment_is_never_ahead)
{
    for (int i = 0; i < 20; i++) {
        uint64_t low = clock_wall_ms();
        uint64_t now = clock_mono_ns();
        uint64_t end = now + 2000000; /* until it is read anew */
        uint64_t at;

        at = clock_wall_ms_at(now);
        assert_true(at + 1 >= low && at <= clock_wall_ms());
        while (now < end) {
            now = clock_mono_ns();
        }
        (void)clock_wall_ms_at(now - 900000);
        assert_true(clock_wall_ms_at(now) <= clock_wall_ms());
    }
}

/* Waits on the monotonic clock, at most 10 s, for CPU time to pass. */
TEST(a_clock_that_is_set_has_jumped)
{
    const uint64_t ms = 1000 * 1000;
    const uint64_t minute = 60 * 1000;
    int64_t pace = 0;

    assert_int_equal(clock_jump_ms(&pace, 5000000, 7 * ms), 0);
    assert_int_equal(clock_jump_ms(&pace, 5000100, 107 * ms), 0);
    assert_int_equal(clock_jump_ms(&pace, 5000100 + minute, 107 * ms), minute);
    assert_int_equal(clock_jump_ms(&pace, 5000100 + minute, 107 * ms), 0);
    assert_int_equal(clock_jump_ms(&pace, 5000100 - minute, 107 * ms),
                     -2 * (int64_t)minute);
    for (uint64_t i = 1; i < 100; i++) { /* a drift */
        assert_int_equal(
            clock_jump_ms(&pace, 5000100 - minute + i * 3000, 107 * ms), 0);
    }
}

TEST(the_cpu_clock_counts_the_work_of_the_thread_only)
{
    uint64_t start_ns = clock_mono_ns();
    uint64_t start_cpu = clock_thread_cpu_ns();
    struct timespec pause = { 0, 20 * 1000 * 1000 };
    uint64_t before;

    while (clock_thread_cpu_ns() - start_cpu < 2000000) {
        assert_true(clock_mono_ns() - start_ns < 10000000000U);
    }
    before = clock_thread_cpu_ns();
    start_ns = clock_mono_ns();
    (void)nanosleep(&pause, NULL);
    assert_true(clock_mono_ns() - start_ns >= 20000000);
    assert_true(clock_thread_cpu_ns() - before < 20000000);
}
