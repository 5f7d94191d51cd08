/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A thread that runs beside others: it sleeps where they took its processor,
 * and nowhere else.
 */
#include "keyspace/pace.h"

#include "../test.h"

enum { MS = 1000 * 1000 };

/* Returns the sleep after so much work, and so many preemptions. */
static uint64_t
sleep_after(struct pace *pace, uint64_t cpu_ns, uint64_t preempted)
{
    struct pace now = *pace;

    now.wall_ns += PACE_LOOK_NS;
    now.cpu_ns += cpu_ns;
    now.preempted += preempted;
    return pace_look(pace, &now);
}

TEST(a_thread_that_keeps_its_processor_never_sleeps)
{
    struct pace pace = { .cpu_ns = 5, .preempted = 7 };

    for (int i = 0; i < 100; i++) {
        assert_int_equal(0, sleep_after(&pace, 10 * MS, 0));
    }
}

TEST(a_preempted_thread_sleeps_twice_as_long_as_it_ran)
{
    struct pace pace = { .preempted = 7 };

    assert_int_equal(6 * MS, sleep_after(&pace, 3 * MS, 1));
    assert_int_equal(2 * MS, sleep_after(&pace, 1 * MS, 9));
    assert_int_equal(0, sleep_after(&pace, 3 * MS, 0)); /* counted once */
}

/* So a walk that is cancelled ends soon. */
TEST(a_sleep_is_short)
{
    struct pace pace = { 0 };

    assert_int_equal(PACE_SLEEP_MAX_NS,
                     sleep_after(&pace, UINT64_C(1000) * MS, 1));
}

TEST(a_look_comes_after_its_time)
{
    struct pace pace;
    struct pace before;

    pace_begin(&pace);
    before = pace;
    while (pace.wall_ns == before.wall_ns) {
        pace_keep(&pace);
    }
    assert_true(pace.wall_ns - before.wall_ns >= PACE_LOOK_NS);
    assert_true(pace.cpu_ns >= before.cpu_ns);
}
