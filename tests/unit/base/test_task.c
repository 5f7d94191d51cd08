/* SPDX-License-Identifier: BSD-3-Clause */
#include "../test.h"
#include "base/clock.h"
#include "base/task.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

struct trace {
    atomic_int ran, told;
    pthread_t by;
    int pipe[2];
};

static void
work(void *arg)
{
    struct trace *trace = arg;

    trace->by = pthread_self();
    atomic_fetch_add(&trace->ran, 1);
}

static void
tell(void *ctx)
{
    struct trace *trace = ctx;

    atomic_fetch_add(&trace->told, 1);
}

TEST(task_runs_what_it_is_given_on_another_thread)
{
    struct trace trace = { 0 };
    struct task *task = task_new("task", tell, &trace);

    for (int i = 1; i <= 100; i++) {
        task_start(task, work, &trace);
        task_wait(task);
        assert_false(task_is_running(task));
        assert_int_equal(atomic_load(&trace.ran), i);
    }
    assert_false(pthread_equal(trace.by, pthread_self()));
    task_free(task);
    assert_int_equal(atomic_load(&trace.told), 100);
}

static void
wait_for_byte(void *arg)
{
    struct trace *trace = arg;
    char byte;

    assert_int_equal(read(trace->pipe[0], &byte, 1), 1);
    atomic_fetch_add(&trace->ran, 1);
}

TEST(task_is_running_until_its_work_has_ended)
{
    struct trace trace = { 0 };
    struct task *task = task_new("task", tell, &trace);

    assert_int_equal(pipe(trace.pipe), 0);
    task_start(task, wait_for_byte, &trace);
    assert_true(task_is_running(task));
    assert_int_equal(atomic_load(&trace.ran), 0);
    assert_int_equal(write(trace.pipe[1], "x", 1), 1);
    task_wait(task);
    assert_int_equal(atomic_load(&trace.ran), 1);
    task_free(task);
    (void)close(trace.pipe[0]);
    (void)close(trace.pipe[1]);
}

TEST(task_free_waits_for_the_task_that_runs)
{
    struct trace trace = { 0 };
    struct task *task = task_new("task", tell, &trace);

    task_start(task, work, &trace);
    task_free(task);
    assert_int_equal(atomic_load(&trace.ran), 1);
    assert_int_equal(atomic_load(&trace.told), 1);
    task_free(NULL);
}

TEST(a_task_waits_for_its_time)
{
    struct trace trace = { 0 };
    struct task *task = task_new("task", tell, &trace);
    uint64_t time_ns = clock_mono_ns() + 20000000;

    task_start_at(task, work, &trace, time_ns);
    task_wait(task);
    assert_int_equal(atomic_load(&trace.ran), 1);
    assert_true(clock_mono_ns() >= time_ns);
    task_free(task);
}

TEST(a_task_that_waits_can_be_hurried_and_is_not_lost_at_the_end)
{
    struct trace trace = { 0 };
    struct task *task = task_new("task", tell, &trace);

    task_hurry(task); /* nothing waits */
    task_start_at(task, work, &trace, UINT64_MAX);
    assert_true(task_is_running(task));
    task_hurry(task);
    task_wait(task);
    assert_int_equal(atomic_load(&trace.ran), 1);
    task_start_at(task, work, &trace, UINT64_MAX);
    task_free(task);
    assert_int_equal(atomic_load(&trace.ran), 2);
    assert_int_equal(atomic_load(&trace.told), 2);
}
