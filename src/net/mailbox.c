/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two arrays: posters fill one under the lock, the owner takes it whole and
 * leaves the other, so that calls run without the lock.
 */
#include "net/mailbox.h"

#include "base/err.h"
#include "base/mem.h"
#include "net/loop.h"
#include "net/pending.h"

enum { FIRST = 64 }; /* posting so few never fails for want of memory */

static void
on_async(uv_async_t *async)
{
    struct mailbox *box = async->data;
    struct mail *mail;
    uint32_t count;
    uint32_t capacity;

    uv_mutex_lock(&box->mutex);
    mail = box->queue;
    count = box->count;
    capacity = box->capacity;
    box->queue = box->drain;
    box->capacity = box->drain_capacity;
    box->count = 0;
    uv_mutex_unlock(&box->mutex);
    box->drain = mail;
    box->drain_capacity = capacity;
    if (count > 0) {
        pending_flush(box->loop); /* a call may last */
    }
    for (uint32_t i = 0; i < count; i++) {
        mail[i].fn(box->loop, mail[i].ptr, mail[i].number);
    }
    mailbox_answer_poke(box);
}

void
mailbox_init(struct mailbox *box, struct loop *loop)
{
    *box = (struct mailbox){ .loop = loop,
                             .queue = mem_alloc(FIRST * sizeof(*box->queue)),
                             .drain = mem_alloc(FIRST * sizeof(*box->drain)),
                             .capacity = FIRST,
                             .drain_capacity = FIRST };
    CHECK(uv_mutex_init(&box->mutex) == 0);
    CHECK(uv_async_init(&loop->uv, &box->async, on_async) == 0);
    box->async.data = box;
}

static bool
make_room(struct mailbox *box)
{
    uint32_t capacity = box->capacity * 2;
    struct mail *queue;

    if (box->count < box->capacity) {
        return true;
    }
    if (capacity > MAILBOX_MAX) {
        return false;
    }
    queue = mem_try_realloc(box->queue, capacity * sizeof(*queue));
    if (queue == NULL) {
        return false;
    }
    box->queue = queue;
    box->capacity = capacity;
    return true;
}

bool
mailbox_post(struct mailbox *box, mail_fn fn, void *ptr, uint64_t number)
{
    bool posted;

    uv_mutex_lock(&box->mutex);
    posted = make_room(box);
    if (posted) {
        box->queue[box->count] = (struct mail){ fn, ptr, number };
        box->count++;
    }
    uv_mutex_unlock(&box->mutex);
    if (posted) {
        CHECK(uv_async_send(&box->async) == 0);
    }
    return posted;
}

void
mailbox_on_poke(struct mailbox *box, void (*poked)(void *ctx), void *ctx)
{
    box->poked = poked;
    box->poked_ctx = ctx;
}

void
mailbox_poke(struct mailbox *box)
{
    if (!atomic_exchange(&box->poke, true)) {
        CHECK(uv_async_send(&box->async) == 0);
    }
}

void
mailbox_answer_poke(struct mailbox *box)
{
    if (atomic_load(&box->poke) && atomic_exchange(&box->poke, false)) {
        box->poked(box->poked_ctx);
    }
}

void
mailbox_close(struct mailbox *box)
{
    uv_close((uv_handle_t *)&box->async, NULL);
}

void
mailbox_fini(struct mailbox *box)
{
    mem_free(box->queue);
    mem_free(box->drain);
    uv_mutex_destroy(&box->mutex);
}
