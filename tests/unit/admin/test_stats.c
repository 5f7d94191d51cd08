/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Command statistics: sums over slots, each slot one writer, reset.
 */
#include "admin/stats.h"

#include "../test.h"

#include <pthread.h>

enum { THREADS = 3, COMMANDS = 5, ROUNDS = 20000 };

static void
assert_command(const struct stats *stats, unsigned command, uint64_t calls,
               uint64_t ns, uint64_t rejected, uint64_t failed)
{
    struct stats_sum sum = stats_sum_command(stats, command);

    assert_int_equal(sum.calls, calls);
    assert_int_equal(sum.ns, ns);
    assert_int_equal(sum.rejected, rejected);
    assert_int_equal(sum.failed, failed);
}

TEST(stats_begin_at_zero)
{
    struct stats *stats = stats_new(THREADS, COMMANDS);

    for (unsigned i = 0; i < COMMANDS; i++) {
        assert_command(stats, i, 0, 0, 0, 0);
    }
    for (unsigned i = 0; i < ERR_COUNT; i++) {
        assert_int_equal(stats_sum_error(stats, (enum err)i), 0);
    }
    stats_free(stats);
}

TEST(stats_sum_all_slots_and_keep_commands_apart)
{
    struct stats *stats = stats_new(THREADS, COMMANDS);

    for (unsigned t = 0; t < THREADS; t++) {
        struct stats_slot *slot = stats_slot(stats, t);

        stats_bump(&slot->command[0].calls, 1);
        stats_bump(&slot->command[0].ns, 1000 * (t + 1));
        stats_bump(&slot->command[COMMANDS - 1].rejected, 10);
        stats_bump(&slot->command[COMMANDS - 1].failed, 100);
        stats_bump(&slot->error[ERR_SYNTAX], t);
        stats_bump(&slot->error[ERR_COUNT - 1], 2);
    }
    assert_command(stats, 0, 3, 6000, 0, 0);
    assert_command(stats, 1, 0, 0, 0, 0);
    assert_command(stats, COMMANDS - 1, 0, 0, 30, 300);
    assert_int_equal(stats_sum_error(stats, ERR_SYNTAX), 3);
    assert_int_equal(stats_sum_error(stats, ERR_ARITY), 0);
    assert_int_equal(stats_sum_error(stats, (enum err)(ERR_COUNT - 1)), 6);
    stats_free(stats);
}

TEST(stats_reset_clears_every_figure_of_every_slot)
{
    struct stats *stats = stats_new(THREADS, COMMANDS);

    for (unsigned t = 0; t < THREADS; t++) {
        struct stats_slot *slot = stats_slot(stats, t);

        for (unsigned c = 0; c < COMMANDS; c++) {
            stats_bump(&slot->command[c].calls, 1);
            stats_bump(&slot->command[c].ns, 1);
            stats_bump(&slot->command[c].rejected, 1);
            stats_bump(&slot->command[c].failed, 1);
        }
        for (unsigned e = 0; e < ERR_COUNT; e++) {
            stats_bump(&slot->error[e], 1);
        }
    }
    stats_reset(stats);
    for (unsigned c = 0; c < COMMANDS; c++) {
        assert_command(stats, c, 0, 0, 0, 0);
    }
    for (unsigned e = 0; e < ERR_COUNT; e++) {
        assert_int_equal(stats_sum_error(stats, (enum err)e), 0);
    }
    stats_free(stats);
}

static void *
count(void *slot_ptr)
{
    struct stats_slot *slot = slot_ptr;

    for (unsigned i = 0; i < ROUNDS; i++) {
        stats_bump(&slot->command[2].calls, 1);
        stats_bump(&slot->error[ERR_NOAUTH], 1);
    }
    return NULL;
}

TEST(stats_lose_nothing_while_every_thread_writes_its_own_slot)
{
    struct stats *stats = stats_new(THREADS, COMMANDS);
    pthread_t thread[THREADS];
    uint64_t before = 0;

    for (unsigned t = 0; t < THREADS; t++) {
        assert_int_equal(
            pthread_create(&thread[t], NULL, count, stats_slot(stats, t)), 0);
    }
    for (unsigned i = 0; i < 100; i++) { /* a reader sees it only rise */
        uint64_t now = stats_sum_command(stats, 2).calls;

        assert_true(now >= before);
        before = now;
    }
    for (unsigned t = 0; t < THREADS; t++) {
        assert_int_equal(pthread_join(thread[t], NULL), 0);
    }
    assert_int_equal(stats_sum_command(stats, 2).calls, THREADS * ROUNDS);
    assert_int_equal(stats_sum_error(stats, ERR_NOAUTH), THREADS * ROUNDS);
    stats_free(stats);
}
