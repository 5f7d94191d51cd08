/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Command statistics: sums over slots, each slot one writer, reset; and the
 * spread of times, compared with the times themselves.
 */
#include "measure/stats.h"

#include "../test.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdlib.h>

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

/* Starts a thread for each slot, with the slot as its argument. */
static void
start_threads(struct stats *stats, void *(*run)(void *slot),
              pthread_t ret_thread[THREADS])
{
    for (unsigned t = 0; t < THREADS; t++) {
        assert_int_equal(
            pthread_create(&ret_thread[t], NULL, run, stats_slot(stats, t)), 0);
    }
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

    start_threads(stats, count, thread);
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

/* ---- resets while threads count ------------------------------------------ */

struct counter {
    struct stats_slot *slot;
    atomic_bool over;
    _Atomic uint64_t count;
};

static void *
count_on(void *counter_ptr)
{
    struct counter *counter = counter_ptr;

    while (!atomic_load_explicit(&counter->over, memory_order_relaxed)) {
        stats_bump(&counter->slot->command[0].calls, 1);
        stats_lasted(counter->slot, 0, 1, 5);
        atomic_store(&counter->count, counter->count + 1);
    }
    return NULL;
}

/* What was counted before a reset, and at most what was counted after it. */
TEST(counts_from_before_a_reset_do_not_come_back)
{
    enum { RESETS = 20000, BEFORE = 100000 };
    struct stats *stats = stats_new(1, COMMANDS);
    struct counter counter = { .slot = stats_slot(stats, 0) };
    struct stats_histogram histogram;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, count_on, &counter), 0);
    while (atomic_load(&counter.count) < BEFORE) {
    }
    for (unsigned i = 0; i < RESETS; i++) {
        uint64_t before = atomic_load(&counter.count);
        uint64_t calls, most;

        stats_reset(stats);
        calls = stats_sum_command(stats, 0).calls;
        (void)stats_sum_spread(stats, 0, &histogram);
        /* One may be being counted, and one counted but not yet published. */
        most = atomic_load(&counter.count) - before + 2;
        assert_true(calls <= most);
        assert_true(histogram.count <= most);
    }
    atomic_store(&counter.over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    stats_free(stats);
}

TEST(a_reset_without_memory_empties_the_buckets)
{
    struct stats *stats = stats_new(2, COMMANDS);
    struct stats_histogram histogram;

    stats_lasted(stats_slot(stats, 1), 3, 7, 5);
    mem_fail_at(1);
    stats_reset(stats);
    assert_true(mem_fail_clear());
    assert_false(stats_sum_spread(stats, 3, &histogram));
    stats_lasted(stats_slot(stats, 0), 3, 2, 5);
    assert_true(stats_sum_spread(stats, 3, &histogram));
    assert_int_equal(histogram.count, 2);
    stats_reset(stats);
    assert_false(stats_sum_spread(stats, 3, &histogram));
    stats_free(stats);
}

/* ---- spreads ------------------------------------------------------------- */

static struct stats_histogram
histogram_of(const struct stats *stats, unsigned command)
{
    struct stats_histogram histogram;

    (void)stats_sum_spread(stats, command, &histogram);
    return histogram;
}

TEST(buckets_are_in_order_and_have_no_gaps)
{
    unsigned last = 0;

    for (uint64_t ns = 0; ns < 100000; ns++) {
        unsigned bucket = stats_bucket(ns);

        assert_true(bucket == last || bucket == last + 1);
        last = bucket;
    }
    for (unsigned bits = 0; bits < 64; bits++) {
        uint64_t ns = (uint64_t)1 << bits;

        assert_true(stats_bucket(ns) < STATS_BUCKETS);
        assert_true(stats_bucket(ns) >= stats_bucket(ns - 1));
    }
    assert_int_equal(stats_bucket(UINT64_MAX), STATS_BUCKETS - 1);
    assert_int_equal(stats_bucket(((uint64_t)1 << STATS_NS_BITS) - 1),
                     STATS_BUCKETS - 1);
}

TEST(a_command_that_nobody_uses_has_no_buckets)
{
    uint64_t before = mem_used();
    struct stats *stats = stats_new(THREADS, COMMANDS);
    uint64_t bare = mem_used() - before;
    struct stats_histogram histogram;

    assert_false(stats_sum_spread(stats, 1, &histogram));
    assert_int_equal(mem_used() - before, bare);
    stats_lasted(stats_slot(stats, 1), 1, 1, 5);
    assert_true(mem_used() - before >= bare + sizeof(struct stats_spread));
    assert_true(stats_sum_spread(stats, 1, &histogram));
    assert_false(stats_sum_spread(stats, 0, &histogram));
    stats_free(stats);
    assert_int_equal(mem_used(), before);
}

static int
compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* At most 1/32 above the truth, never below it. */
static void
assert_percentile(const struct stats_histogram *histogram,
                  const uint64_t *sorted, size_t count, double percent)
{
    double place = percent / 100 * (double)count + 0.5;
    size_t rank = place < 1 ? 1 : (size_t)place;
    uint64_t truth = sorted[(rank < count ? rank : count) - 1];
    uint64_t said = stats_percentile_ns(histogram, percent);

    assert_true(said >= truth);
    assert_true(said - truth <= truth / STATS_SUB);
}

TEST(percentiles_are_those_of_the_sorted_times_within_a_32nd)
{
    static const double percents[] = { 0, 1, 25, 50, 75, 90, 99, 99.9, 100 };
    uint64_t seed = test_seed();
    enum { TIMES = 5000 };
    uint64_t *times = mem_alloc(TIMES * sizeof(times[0]));
    struct stats *stats = stats_new(2, COMMANDS);
    struct stats_histogram histogram;

    for (size_t i = 0; i < TIMES; i++) {
        uint64_t random = test_random(&seed);

        /* All orders of magnitude alike, from 1 ns to 30 s. */
        times[i] = (random >> 30) >> ((random >> 20) % 34);
        stats_lasted(stats_slot(stats, i % 2), 3, 1, times[i]);
    }
    qsort(times, TIMES, sizeof(times[0]), compare);
    histogram = histogram_of(stats, 3);
    assert_int_equal(histogram.count, TIMES);
    for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
        assert_percentile(&histogram, times, TIMES, percents[i]);
    }
    for (unsigned bits = 0; bits <= STATS_NS_BITS; bits++) {
        uint64_t below = 0;

        while (below < TIMES && times[below] <= stats_step_ns(bits)) {
            below++;
        }
        assert_int_equal(stats_count_below(&histogram, bits), below);
    }
    mem_free(times);
    stats_free(stats);
}

TEST(one_time_is_all_percentiles)
{
    struct stats *stats = stats_new(1, COMMANDS);
    struct stats_histogram histogram;

    stats_lasted(stats_slot(stats, 0), 0, 64, 63);
    histogram = histogram_of(stats, 0);
    assert_int_equal(histogram.count, 64);
    assert_int_equal(stats_percentile_ns(&histogram, 0), 63);
    assert_int_equal(stats_percentile_ns(&histogram, 50), 63);
    assert_int_equal(stats_percentile_ns(&histogram, 100), 63);
    stats_free(stats);
}

TEST(spreading_can_be_switched_off_and_on)
{
    struct stats *stats = stats_new(2, COMMANDS);

    stats_set_spreads(stats, false);
    stats_lasted(stats_slot(stats, 1), 0, 1, 5);
    assert_int_equal(histogram_of(stats, 0).count, 0);
    stats_set_spreads(stats, true);
    stats_lasted(stats_slot(stats, 1), 0, 1, 5);
    assert_int_equal(histogram_of(stats, 0).count, 1);
    stats_set_spreads(stats, false);
    assert_int_equal(histogram_of(stats, 0).count, 1);
    stats_reset(stats);
    assert_int_equal(histogram_of(stats, 0).count, 0);
    stats_free(stats);
}

TEST(without_memory_for_buckets_times_are_not_counted)
{
    struct stats *stats = stats_new(1, COMMANDS);

    mem_fail_at(1);
    stats_lasted(stats_slot(stats, 0), 0, 1, 5);
    assert_true(mem_fail_clear());
    assert_int_equal(histogram_of(stats, 0).count, 0);
    stats_lasted(stats_slot(stats, 0), 0, 1, 5);
    assert_int_equal(histogram_of(stats, 0).count, 1);
    stats_free(stats);
}

static void *
spread(void *slot_ptr)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        stats_lasted(slot_ptr, i % COMMANDS, 1, i);
    }
    return NULL;
}

TEST(spreads_appear_while_others_read)
{
    struct stats *stats = stats_new(THREADS, COMMANDS);
    pthread_t thread[THREADS];
    uint64_t sum = 0;

    start_threads(stats, spread, thread);
    for (unsigned i = 0; i < 200; i++) {
        uint64_t now = histogram_of(stats, COMMANDS - 1).count;

        assert_true(now >= sum);
        sum = now;
    }
    for (unsigned t = 0; t < THREADS; t++) {
        assert_int_equal(pthread_join(thread[t], NULL), 0);
    }
    assert_int_equal(histogram_of(stats, COMMANDS - 1).count,
                     THREADS * ROUNDS / COMMANDS);
    stats_free(stats);
}
