/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sums over threads that count at the same time, slots that are handed on, and
 * what a reset touches.
 */
#include "base/metrics.h"

#include "../test.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum { THREADS = 4, ADDS = 100000, MORE_THAN_SLOTS = 300 };

TEST(each_metric_has_a_name_of_its_own_and_a_text)
{
    for (int a = 0; a < METRIC_COUNT; a++) {
        assert_true(strlen(metric_table[a].name) > 0);
        assert_true(strlen(metric_table[a].text) > 0);
        assert_null(strchr(metric_table[a].name, ' '));
        for (int b = 0; b < a; b++) {
            assert_string_not_equal(metric_table[a].name, metric_table[b].name);
        }
    }
}

static void *
count_many(void *arg)
{
    for (int i = 0; i < ADDS; i++) {
        metric_add(METRIC_COMMANDS, 1);
        metric_add(METRIC_BF_ITEMS, i % 2 == 0 ? 3 : -2);
    }
    metric_thread_exit();
    return arg;
}

TEST(sums_over_threads_lose_nothing)
{
    int64_t commands = metric_sum(METRIC_COMMANDS);
    int64_t items = metric_sum(METRIC_BF_ITEMS);
    pthread_t thread[THREADS];

    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(0, pthread_create(&thread[i], NULL, count_many, NULL));
    }
    for (int i = 0; i < 1000; i++) { /* read while they count */
        int64_t sum = metric_sum(METRIC_COMMANDS) - commands;

        assert_true(sum >= 0 && sum <= THREADS * ADDS);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(0, pthread_join(thread[i], NULL));
    }
    assert_int_equal(THREADS * ADDS, metric_sum(METRIC_COMMANDS) - commands);
    assert_int_equal(THREADS * ADDS / 2, metric_sum(METRIC_BF_ITEMS) - items);
}

static void *
count_one(void *arg)
{
    metric_add(METRIC_READS, 1);
    metric_thread_exit();
    metric_thread_exit(); /* nothing left to give back */
    return arg;
}

/* Without handing slots on, the 129th thread would abort. */
TEST(slots_are_handed_on_and_keep_their_values)
{
    int64_t before = metric_sum(METRIC_READS);
    pthread_t thread;

    for (int i = 0; i < MORE_THAN_SLOTS; i++) {
        assert_int_equal(0, pthread_create(&thread, NULL, count_one, NULL));
        assert_int_equal(0, pthread_join(thread, NULL));
    }
    assert_int_equal(MORE_THAN_SLOTS, metric_sum(METRIC_READS) - before);
}

TEST(a_reset_clears_counters_of_all_slots_and_leaves_gauges)
{
    pthread_t thread;
    int64_t clients;

    metric_add(METRIC_COMMANDS, 5);
    metric_add(METRIC_CONNECTED_CLIENTS, 2);
    assert_int_equal(0, pthread_create(&thread, NULL, count_many, NULL));
    assert_int_equal(0, pthread_join(thread, NULL));
    clients = metric_sum(METRIC_CONNECTED_CLIENTS);
    metric_reset_counters();
    for (int i = 0; i < METRIC_COUNT; i++) {
        if (metric_table[i].kind == METRIC_COUNTER) {
            assert_int_equal(0, metric_sum((enum metric)i));
        }
    }
    assert_int_equal(clients, metric_sum(METRIC_CONNECTED_CLIENTS));
    metric_add(METRIC_CONNECTED_CLIENTS, -2);
    metric_add(METRIC_COMMANDS, 1);
    assert_int_equal(1, metric_sum(METRIC_COMMANDS));
}

TEST(ever_counts_survive_a_reset)
{
    int64_t ever = metric_sum_ever(METRIC_EXPIRED_KEYS);

    metric_add(METRIC_EXPIRED_KEYS, 5);
    metric_reset_counters();
    metric_add(METRIC_EXPIRED_KEYS, 1);
    assert_int_equal(1, metric_sum(METRIC_EXPIRED_KEYS));
    assert_int_equal(ever + 6, metric_sum_ever(METRIC_EXPIRED_KEYS));
}

static _Atomic uint64_t counted;
static atomic_bool counted_enough;

static void *
count_on(void *arg)
{
    while (!atomic_load_explicit(&counted_enough, memory_order_relaxed)) {
        metric_add(METRIC_COMMANDS, 1);
        atomic_store(&counted, counted + 1);
    }
    metric_thread_exit();
    return arg;
}

TEST(counts_from_before_a_reset_do_not_come_back)
{
    enum { RESETS = 1000000, BEFORE = 100000 };
    pthread_t thread;

    assert_int_equal(0, pthread_create(&thread, NULL, count_on, NULL));
    while (atomic_load(&counted) < BEFORE) {
    }
    for (int i = 0; i < RESETS; i++) {
        uint64_t before = atomic_load(&counted);
        int64_t sum;

        metric_reset_counters();
        sum = metric_sum(METRIC_COMMANDS);
        /* One may be in the making, and one counted but not yet told. */
        assert_true(sum >= 0 &&
                    (uint64_t)sum <= atomic_load(&counted) - before + 2);
    }
    atomic_store(&counted_enough, true);
    assert_int_equal(0, pthread_join(thread, NULL));
}
