/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The owner and the thread share one mutex, with one condition for each
 * direction.
 */
#include "base/task.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/thread.h"

#include <pthread.h>
#include <stddef.h>
#include <time.h>

struct task {
    pthread_t thread;
    void (*done)(void *ctx);
    void *ctx;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t work, idle;
    void (*fn)(void *arg); /* NULL: no task */
    void *arg;
    uint64_t not_before_ns; /* of clock_mono_ns; 0: at once */
    bool stop;
};

/* Waits for the task's time. Under the mutex, which it unlocks meanwhile. */
static void
wait_for_time(struct task *task)
{
    while (!task->stop && task->not_before_ns > clock_mono_ns()) {
        const struct timespec until = {
            .tv_sec = (time_t)(task->not_before_ns / 1000000000),
            .tv_nsec = (long)(task->not_before_ns % 1000000000)
        };

        (void)pthread_cond_timedwait(&task->work, &task->mutex, &until);
    }
}

static void *
run_task(void *arg)
{
    struct task *task = arg;

    pthread_mutex_lock(&task->mutex);
    for (;;) {
        while (task->fn == NULL && !task->stop) {
            pthread_cond_wait(&task->work, &task->mutex);
        }
        if (task->fn == NULL) {
            break;
        }
        wait_for_time(task);
        pthread_mutex_unlock(&task->mutex);
        task->fn(task->arg); /* both are unchanged until fn is NULL */
        pthread_mutex_lock(&task->mutex);
        task->fn = NULL;
        pthread_cond_broadcast(&task->idle);
        pthread_mutex_unlock(&task->mutex);
        task->done(task->ctx);
        pthread_mutex_lock(&task->mutex);
    }
    pthread_mutex_unlock(&task->mutex);
    metric_thread_exit();
    return NULL;
}

struct task *
task_new(const char *name, void (*done)(void *ctx), void *ctx)
{
    struct task *task = mem_zalloc(sizeof(*task));
    pthread_condattr_t monotonic;

    task->done = done;
    task->ctx = ctx;
    CHECK(pthread_mutex_init(&task->mutex, NULL) == 0);
    CHECK(pthread_condattr_init(&monotonic) == 0);
    CHECK(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(&task->work, &monotonic) == 0);
    pthread_condattr_destroy(&monotonic);
    CHECK(pthread_cond_init(&task->idle, NULL) == 0);
    thread_must_start(&task->thread, name, run_task, task);
    return task;
}

void
task_free(struct task *task)
{
    if (task == NULL) {
        return;
    }
    pthread_mutex_lock(&task->mutex);
    task->stop = true;
    pthread_cond_signal(&task->work);
    pthread_mutex_unlock(&task->mutex);
    CHECK(pthread_join(task->thread, NULL) == 0);
    pthread_cond_destroy(&task->idle);
    pthread_cond_destroy(&task->work);
    pthread_mutex_destroy(&task->mutex);
    mem_free(task);
}

void
task_start_at(struct task *task, void (*fn)(void *arg), void *arg,
              uint64_t not_before_ns)
{
    pthread_mutex_lock(&task->mutex);
    CHECK(task->fn == NULL && fn != NULL);
    task->fn = fn;
    task->arg = arg;
    task->not_before_ns = not_before_ns;
    pthread_cond_signal(&task->work);
    pthread_mutex_unlock(&task->mutex);
}

void
task_start(struct task *task, void (*fn)(void *arg), void *arg)
{
    task_start_at(task, fn, arg, 0);
}

void
task_hurry(struct task *task)
{
    pthread_mutex_lock(&task->mutex);
    task->not_before_ns = 0;
    pthread_cond_signal(&task->work);
    pthread_mutex_unlock(&task->mutex);
}

bool
task_is_running(struct task *task)
{
    bool running;

    pthread_mutex_lock(&task->mutex);
    running = task->fn != NULL;
    pthread_mutex_unlock(&task->mutex);
    return running;
}

void
task_wait(struct task *task)
{
    pthread_mutex_lock(&task->mutex);
    while (task->fn != NULL) {
        pthread_cond_wait(&task->idle, &task->mutex);
    }
    pthread_mutex_unlock(&task->mutex);
}
