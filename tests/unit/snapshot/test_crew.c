/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads that work in turns.
 */
#include "snapshot/crew.h"

#include "../test.h"

#include "base/mem.h"

enum { THREADS = 4, TURNS = 2000 };

struct share {
    unsigned turns[THREADS]; /* by number, without locks */
};

static void
work(void *ctx, unsigned number)
{
    struct share *share = ctx;

    assert_true(number < THREADS);
    share->turns[number]++;
}

TEST(each_thread_works_once_a_turn_and_the_owner_sees_it)
{
    struct crew *crew = crew_new(THREADS);
    struct share share = { { 0 } };

    assert_int_equal(crew_size(crew), THREADS);
    for (unsigned turn = 1; turn <= TURNS; turn++) {
        crew_begin(crew, work, &share);
        crew_end(crew, work, &share);
        for (unsigned i = 0; i < THREADS; i++) {
            assert_int_equal(share.turns[i], turn);
        }
    }
    crew_free(crew);
}

TEST(without_threads_or_memory_the_owner_works_alone)
{
    struct share share = { { 0 } };
    struct crew *crew = crew_new(1);

    assert_null(crew);
    mem_fail_at(1);
    crew = crew_new(THREADS);
    assert_true(mem_fail_clear());
    assert_null(crew);
    assert_int_equal(crew_size(crew), 1);
    crew_begin(crew, work, &share);
    assert_int_equal(share.turns[0], 0);
    crew_end(crew, work, &share);
    assert_int_equal(share.turns[0], 1);
    assert_int_equal(share.turns[1], 0);
    crew_free(crew);
}

TEST(a_crew_that_never_worked_ends)
{
    crew_free(crew_new(2));
}
