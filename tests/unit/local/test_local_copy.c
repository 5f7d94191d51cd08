/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Simulated schedules against the promise; each rule that is left out breaks it
 * in some of them. ROUNDS in the environment sets their number.
 */
#include "local/local_copy.h"

#include "../test.h"
#include "sim_local.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORLDS = 150, SOME_BREAKS = 1000 };

static uint64_t
worlds(void)
{
    const char *rounds = getenv("ROUNDS");

    return rounds != NULL ? strtoull(rounds, NULL, 10) : WORLDS;
}

TEST(no_schedule_breaks_the_promise)
{
    struct sim_result sum = { 0 };

    for (uint64_t seed = 1; seed <= worlds(); seed++) {
        struct sim_result one = sim_local_run(seed, 0, 0);

        if (one.broken > 0) {
            fail_msg("world %llu: %llu answers break the promise",
                     (unsigned long long)seed, (unsigned long long)one.broken);
        }
        sum.answers += one.answers;
        sum.unknown += one.unknown;
        sum.loads += one.loads;
    }
    (void)printf("%llu answers, %.1f %% unknown, %llu loads\n",
                 (unsigned long long)sum.answers,
                 100.0 * (double)sum.unknown / (double)sum.answers,
                 (unsigned long long)sum.loads);
    assert_true(sum.unknown < sum.answers / 2);
    assert_true(sum.loads > worlds());
}

/* Returns whether some world breaks the promise. */
static bool
breaks(unsigned left_out, int pings)
{
    for (uint64_t seed = 1; seed <= SOME_BREAKS; seed++) {
        if (sim_local_run(seed, left_out, pings).broken > 0) {
            return true;
        }
    }
    return false;
}

TEST(the_deadline_counts_from_when_a_question_was_sent)
{
    assert_true(breaks(LOCAL_WITHOUT_SENT, 0));
}

TEST(answers_do_not_revive_a_copy_that_was_replaced)
{
    assert_true(breaks(LOCAL_WITHOUT_CHANGED, 0));
}

TEST(a_load_ends_with_a_second_answer)
{
    assert_true(breaks(LOCAL_WITHOUT_CHECK, 0));
}

TEST(items_that_are_told_during_a_load_belong_to_it)
{
    assert_true(breaks(LOCAL_WITHOUT_GATHERED, 0));
}

TEST(an_answer_must_not_overtake_what_was_gathered)
{
    assert_true(breaks(0, 1));
}
