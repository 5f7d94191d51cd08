/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One mutex, one condition in each direction.
 */
#include "base/task.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/thread.h"

#include <pthread.h>
#include <stddef.h>

struct task {
    pthread_t thread;
    void (*done)(void *ctx);
    void *ctx;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t work, idle;
    void (*fn)(void *arg); /* NULL: no task */
    void *arg;
    bool stop;
};

static void *
run(void *arg)
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

    task->done = done;
    task->ctx = ctx;
    CHECK(pthread_mutex_init(&task->mutex, NULL) == 0);
    CHECK(pthread_cond_init(&task->work, NULL) == 0);
    CHECK(pthread_cond_init(&task->idle, NULL) == 0);
    thread_must_start(&task->thread, name, run, task);
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
task_start(struct task *task, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&task->mutex);
    CHECK(task->fn == NULL && fn != NULL);
    task->fn = fn;
    task->arg = arg;
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
