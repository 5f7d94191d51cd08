/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The latency monitor: one sample a second, the ring, the worst, reset.
 */
#include "measure/latency.h"

#include "../test.h"

#include <pthread.h>

TEST(latency_events_are_named_in_order_and_found_by_name)
{
    enum latency_event event;

    for (unsigned i = 0; i < LATENCY_EVENTS; i++) {
        const char *name = latency_event_name((enum latency_event)i);

        assert_true(latency_event_find(slice_of(name), &event));
        assert_int_equal(event, i);
        assert_true(
            i == 0 ||
            strcmp(latency_event_name((enum latency_event)(i - 1)), name) < 0);
    }
    assert_false(latency_event_find(slice_lit("nope"), &event));
    assert_false(latency_event_find(slice_lit(""), &event));
}

TEST(latency_keeps_the_worst_of_each_second)
{
    struct latency *latency = latency_new();
    struct latency_series series;

    latency_read(latency, LATENCY_EXPIRE_CYCLE, &series);
    assert_int_equal(series.count, 0);
    latency_add(latency, LATENCY_EXPIRE_CYCLE, 100, 5);
    latency_add(latency, LATENCY_EXPIRE_CYCLE, 100, 9);
    latency_add(latency, LATENCY_EXPIRE_CYCLE, 100, 7);
    latency_add(latency, LATENCY_EXPIRE_CYCLE, 101, 3);
    latency_read(latency, LATENCY_EXPIRE_CYCLE, &series);
    assert_int_equal(series.count, 2);
    assert_int_equal(series.sample[0].time_s, 100);
    assert_int_equal(series.sample[0].took_ms, 9);
    assert_int_equal(series.sample[1].time_s, 101);
    assert_int_equal(series.sample[1].took_ms, 3);
    assert_int_equal(series.worst_ms, 9);
    latency_read(latency, LATENCY_COMMAND, &series);
    assert_int_equal(series.count, 0);
    latency_free(latency);
}

TEST(latency_forgets_the_oldest_samples_but_not_the_worst)
{
    struct latency *latency = latency_new();
    struct latency_series series;

    latency_add(latency, LATENCY_COMMAND, 1, 1000);
    for (uint64_t i = 2; i < 2 * LATENCY_SAMPLES_MAX; i++) {
        latency_add(latency, LATENCY_COMMAND, i, i);
    }
    latency_read(latency, LATENCY_COMMAND, &series);
    assert_int_equal(series.count, LATENCY_SAMPLES_MAX);
    for (uint64_t i = 0; i < LATENCY_SAMPLES_MAX; i++) {
        assert_int_equal(series.sample[i].time_s, LATENCY_SAMPLES_MAX + i);
    }
    assert_int_equal(series.worst_ms, 1000);
    latency_free(latency);
}

TEST(latency_reset_says_whether_there_was_something)
{
    struct latency *latency = latency_new();
    struct latency_series series;

    assert_false(latency_reset(latency, LATENCY_EXPIRE_CYCLE));
    latency_add(latency, LATENCY_EXPIRE_CYCLE, 1, 1000);
    assert_false(latency_reset(latency, LATENCY_COMMAND));
    assert_true(latency_reset(latency, LATENCY_EXPIRE_CYCLE));
    assert_false(latency_reset(latency, LATENCY_EXPIRE_CYCLE));
    latency_add(latency, LATENCY_EXPIRE_CYCLE, 1, 2);
    latency_read(latency, LATENCY_EXPIRE_CYCLE, &series);
    assert_int_equal(series.count, 1);
    assert_int_equal(series.worst_ms, 2);
    latency_free(latency);
}

static void *
add_many(void *latency)
{
    for (uint64_t i = 0; i < 5000; i++) {
        latency_add(latency, LATENCY_COMMAND, i, i);
    }
    return NULL;
}

TEST(latency_is_whole_while_threads_write)
{
    struct latency *latency = latency_new();
    struct latency_series series;
    pthread_t thread[2];

    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, add_many, latency),
                         0);
    }
    for (unsigned i = 0; i < 500; i++) {
        latency_read(latency, LATENCY_COMMAND, &series);
        for (size_t k = 0; k < series.count; k++) {
            assert_int_equal(series.sample[k].time_s, series.sample[k].took_ms);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    latency_free(latency);
}
