/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Handles of a loop: the mailbox's async, an idle that calls paused handlers
 * again, a timer of one second for timeouts, and the connections. Stopping
 * closes all of them; uv_run returns when the last close callback has run.
 */
#include "net/loop.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "net/conn_internal.h"

static void
on_second(uv_timer_t *timer)
{
    struct loop *loop = timer->data;
    struct conn *next;

    for (struct conn *conn = loop->conns.first; conn != NULL; conn = next) {
        next = conn->next;
        conn_check_timeouts(conn);
    }
}

static void
on_idle(uv_idle_t *idle)
{
    struct loop *loop = idle->data;

    conn_resume_all(loop);
    if (loop->resumable == NULL) {
        (void)uv_idle_stop(idle);
    }
}

void
loop_resume_soon(struct loop *loop)
{
    (void)uv_idle_start(&loop->idle, on_idle);
}

void
loop_init(struct loop *loop, unsigned index, const struct loop_env *env,
          void *owner)
{
    *loop = (struct loop){ .index = index, .env = env, .owner = owner };
    CHECK(uv_loop_init(&loop->uv) == 0);
    loop->uv.data = loop;
    mailbox_init(&loop->mailbox, loop);
    CHECK(uv_idle_init(&loop->uv, &loop->idle) == 0);
    loop->idle.data = loop;
    CHECK(uv_timer_init(&loop->uv, &loop->second) == 0);
    loop->second.data = loop;
    CHECK(uv_timer_start(&loop->second, on_second, 1000, 1000) == 0);
    loop->read_buffer = mem_alloc(LOOP_READ_BYTES);
    loop->pool = stream_pool_new();
}

void
loop_run(struct loop *loop)
{
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    CHECK(loop->stopping);
}

static void
thread_main(void *arg)
{
    loop_run(arg);
    metric_thread_exit();
}

void
loop_start(struct loop *loop)
{
    CHECK(uv_thread_create(&loop->thread, thread_main, loop) == 0);
    loop->has_thread = true;
}

/* A descriptor that a listener posted before the stop is still in the mailbox
 * or comes later: conn_open refuses it, since stopping is set. */
void
loop_stop_here(struct loop *loop)
{
    if (loop->stopping) {
        return;
    }
    loop->stopping = true;
    while (loop->conns.first != NULL) {
        conn_close(loop->conns.first);
    }
    uv_close((uv_handle_t *)&loop->idle, NULL);
    uv_close((uv_handle_t *)&loop->second, NULL);
    mailbox_close(&loop->mailbox);
}

static void
on_stop_mail(struct loop *loop, void *ptr, uint64_t number)
{
    (void)ptr;
    (void)number;
    loop_stop_here(loop);
}

void
loop_stop(struct loop *loop)
{
    while (!mailbox_post(&loop->mailbox, on_stop_mail, NULL, 0)) {
        uv_sleep(1); /* full: the loop is draining it */
    }
}

void
loop_join(struct loop *loop)
{
    if (loop->has_thread) {
        CHECK(uv_thread_join(&loop->thread) == 0);
        loop->has_thread = false;
    }
}

void
loop_fini(struct loop *loop)
{
    CHECK(uv_loop_close(&loop->uv) == 0);
    mailbox_fini(&loop->mailbox);
    stream_pool_free(loop->pool);
    batch_fini(&loop->batch);
    buf_free(&loop->reply);
    mem_free(loop->read_buffer);
}
