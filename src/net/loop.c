/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loop_run.c has the callbacks. Here handles are only started, so that files
 * which loop_run.c uses can ask for a turn.
 */
#include "net/loop.h"

#include "base/err.h"

/* An active idle handle keeps the loop from waiting; the work is done in
 * loop_run.c, behind the idle handles. */
static void
on_idle(uv_idle_t *idle)
{
    (void)idle;
}

void
loop_resume_soon(struct loop *loop)
{
    (void)uv_idle_start(&loop->idle, on_idle);
}

void
loop_tick_soon(struct loop *loop)
{
    if (!uv_is_active((const uv_handle_t *)&loop->tick)) {
        CHECK(uv_timer_again(&loop->tick) == 0);
    }
}

/* One thread stores `released` and then loads `waiting`; the loop stores
 * `waiting` and then loads `released`. All four are sequentially consistent, so
 * at least one of the two sees the other's store. */
void
loop_expect_wake(struct loop *loop)
{
    if (!atomic_load_explicit(&loop->waiting, memory_order_relaxed)) {
        atomic_store(&loop->waiting, true);
    }
}

void
loop_wake(struct loop *loop)
{
    if (atomic_load(&loop->waiting)) {
        CHECK(uv_async_send(&loop->wake) == 0);
    }
}
