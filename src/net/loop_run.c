/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The handles of a loop: the mailbox's async, an idle handle that keeps it from
 * waiting, a timer of one second for timeouts, an async and a timer for held
 * output and parked connections, a check and a prepare handle that end turns,
 * the connections, and the links. Stopping closes all of them; uv_run returns
 * after the last close callback.
 */
#include "net/loop_run.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "net/conn.h"
#include "net/hold.h"
#include "net/link.h"
#include "net/pending.h"
#include "net/push.h"
#include "net/serve.h"
#include "net/shed.h"
#include "net/timeouts.h"
#include "net/usage.h"

enum {
    RELEASE_US = 2000,       /* for held output in one turn */
    REPLY_BYTES = 16 * 1024, /* there is always room for an error */
    SECOND_MS = 1000
};

static const _Atomic uint64_t everything = UINT64_MAX;
static const atomic_bool never = false;

/* Returns how long the loop stood still since the last second. */
static uint64_t
stalled_ms(struct loop *loop)
{
    uint64_t now = uv_now(&loop->uv);
    uint64_t passed_ms = now - loop->second_ms;

    loop->second_ms = now;
    return passed_ms >= (uint64_t)2 * SECOND_MS ? passed_ms - SECOND_MS : 0;
}

static void
on_second(uv_timer_t *timer)
{
    struct loop *loop = timer->data;
    struct usage *usage = loop->env->usage;
    uint64_t stalled = stalled_ms(loop);
    struct conn *next;

    if (usage != NULL &&
        usage_is_above(usage)) { /* the limit may have fallen */
        loop->above = true;
    }
    for (struct conn *conn = loop->conns.first; conn != NULL; conn = next) {
        next = conn->next;
        if (stalled > 0) {
            timeouts_excuse(conn, stalled);
        }
        timeouts_check(conn);
    }
    conn_unpark_for_room(loop);
}

/* Sends held output for some time, and the rest in later turns. */
static void
release_held(struct loop *loop)
{
    uint64_t until_ns = clock_mono_ns() + RELEASE_US * (uint64_t)1000;

    loop->releasing = !hold_release(loop, until_ns);
    if (loop->releasing) {
        loop_resume_soon(loop);
    }
}

/* Serves connections and links that wait for their turn. Another turn that they
 * ask for comes after the next I/O callbacks. */
static void
resume_all(struct loop *loop)
{
    if (loop->releasing) {
        release_held(loop);
    }
    serve_resume_all(loop);
    link_resume_all(loop);
    if (loop->resumable == NULL && loop->turns == NULL &&
        loop->links_soon == NULL && !loop->releasing) {
        (void)uv_idle_stop(&loop->idle);
    }
}

/* Ends a turn: after the I/O callbacks, and again before the loop waits, since
 * connections that waited for their turn are served between the two. */
static void
end_turn(struct loop *loop)
{
    if (loop->turn_open) {
        loop->turn_open = false;
        if (loop->env->handler->turn_end != NULL) {
            loop->env->handler->turn_end(loop);
        }
    }
    pending_flush(loop);
    if (loop->above) {
        shed_largest(loop);
    }
}

static void
on_check(uv_check_t *check)
{
    end_turn(check->data);
}

static void
on_prepare(uv_prepare_t *prepare)
{
    struct loop *loop = prepare->data;

    if (uv_is_active((const uv_handle_t *)&loop->idle)) {
        resume_all(loop);
    }
    end_turn(loop);
}

/* ---- what connections wait for ------------------------------------------- */

static void
on_wake(uv_async_t *async)
{
    struct loop *loop = async->data;

    release_held(loop);
    conn_unpark_all(loop);
    if (loop->held == NULL && loop->parked_for_room == NULL) {
        atomic_store(&loop->waiting, false);
    }
}

static void
on_tick(uv_timer_t *timer)
{
    struct loop *loop = timer->data;

    if (loop->parked == NULL && loop->parked_for_room == NULL) {
        (void)uv_timer_stop(timer);
    }
    conn_unpark_all(loop);
}

/* A call may take long, so pending replies are sent first. */
static void
on_mail(uv_async_t *async)
{
    struct mailbox *box = async->data;

    if (mailbox_collect(box) > 0) {
        pending_flush(box->loop);
    }
    mailbox_deliver(box);
}

/* ---- libuv's memory ------------------------------------------------------ */

/* libuv aborts if it has no memory for one more descriptor, so it may use all
 * of the reserve. */
static void *
uv_alloc(size_t bytes)
{
    enum mem_claim before = mem_set_claim(MEM_OWN);
    void *ptr = mem_try_alloc(bytes);

    (void)mem_set_claim(before);
    return ptr;
}

static void *
uv_zalloc(size_t count, size_t size)
{
    enum mem_claim before;
    size_t bytes;
    void *ptr;

    if (!mem_multiply(count, size, &bytes)) {
        return NULL;
    }
    before = mem_set_claim(MEM_OWN);
    ptr = mem_try_zalloc(bytes);
    (void)mem_set_claim(before);
    return ptr;
}

static void *
uv_resize(void *ptr, size_t bytes)
{
    enum mem_claim before = mem_set_claim(MEM_OWN);
    void *moved = mem_try_realloc(ptr, bytes);

    (void)mem_set_claim(before);
    return moved;
}

void
loop_use_mem(void)
{
    CHECK(uv_replace_allocator(uv_alloc, uv_resize, uv_zalloc, mem_free) == 0);
}

/* ---- from start to end --------------------------------------------------- */

static void
init_waiting(struct loop *loop)
{
    const struct loop_env *env = loop->env;

    loop->released = env->released != NULL ? env->released : &everything;
    loop->gives_up = env->gives_up != NULL ? env->gives_up : &never;
    loop->log_end = env->log_end != NULL ? env->log_end : &everything;
    loop->held_end = &loop->held;
    loop->pushed_end = &loop->pushed;
    CHECK(uv_async_init(&loop->uv, &loop->wake, on_wake) == 0);
    loop->wake.data = loop;
    CHECK(uv_timer_init(&loop->uv, &loop->tick) == 0);
    loop->tick.data = loop;
    CHECK(uv_timer_start(&loop->tick, on_tick, LOOP_TICK_MS, LOOP_TICK_MS) ==
          0);
    CHECK(uv_timer_stop(&loop->tick) == 0); /* loop_tick_soon starts it again */
    CHECK(uv_check_init(&loop->uv, &loop->check) == 0);
    loop->check.data = loop;
    CHECK(uv_check_start(&loop->check, on_check) == 0);
    CHECK(uv_prepare_init(&loop->uv, &loop->prepare) == 0);
    loop->prepare.data = loop;
    CHECK(uv_prepare_start(&loop->prepare, on_prepare) == 0);
}

void
loop_init(struct loop *loop, unsigned index, const struct loop_env *env,
          void *owner)
{
    *loop = (struct loop){ .index = index, .env = env, .owner = owner };
    CHECK(uv_loop_init(&loop->uv) == 0);
    loop->uv.data = loop;
    mailbox_init(&loop->mailbox, loop, &loop->uv, on_mail);
    CHECK(uv_idle_init(&loop->uv, &loop->idle) == 0);
    loop->idle.data = loop;
    CHECK(uv_timer_init(&loop->uv, &loop->second) == 0);
    loop->second.data = loop;
    CHECK(uv_timer_start(&loop->second, on_second, SECOND_MS, SECOND_MS) == 0);
    loop->second_ms = uv_now(&loop->uv);
    init_waiting(loop);
    loop->read_buffer = mem_alloc(LOOP_READ_BYTES);
    CHECK(buf_reserve(&loop->reply, REPLY_BYTES) != NULL);
    loop->pool = stream_pool_new();
}

void
loop_run(struct loop *loop)
{
    (void)mem_set_claim(MEM_SERVE);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    (void)mem_set_claim(MEM_OWN); /* the end may use all of the reserve */
    CHECK(loop->stopping);
}

static void *
thread_main(void *arg)
{
    loop_run(arg);
    metric_thread_exit();
    return NULL;
}

void
loop_start(struct loop *loop)
{
    thread_must_start(&loop->thread, "loop", thread_main, loop);
    loop->has_thread = true;
}

/* A listener may post a descriptor before or after this: serve_open refuses it,
 * since `stopping` is set. */
void
loop_stop_here(struct loop *loop)
{
    if (loop->stopping) {
        return;
    }
    loop->stopping = true;
    end_turn(loop);
    (void)push_flush(loop, UINT64_MAX);
    (void)hold_release(loop, UINT64_MAX);
    while (loop->conns.first != NULL) {
        conn_close(loop->conns.first);
    }
    link_close_all(loop);
    uv_close((uv_handle_t *)&loop->idle, NULL);
    uv_close((uv_handle_t *)&loop->second, NULL);
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_close((uv_handle_t *)&loop->tick, NULL);
    uv_close((uv_handle_t *)&loop->check, NULL);
    uv_close((uv_handle_t *)&loop->prepare, NULL);
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
        CHECK(pthread_join(loop->thread, NULL) == 0);
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
    buf_free(&loop->opened);
    buf_free(&loop->sealed);
    buf_free(&loop->pending.replies);
    mem_free(loop->read_buffer);
}
