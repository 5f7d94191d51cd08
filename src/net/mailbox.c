/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two arrays: posters fill one under the mutex; the owner swaps it for the
 * other, so that calls are made without the mutex.
 */
#include "net/mailbox.h"

#include "base/err.h"
#include "base/mem.h"

enum { FIRST = 64 }; /* posting so few never needs memory */

void
mailbox_init(struct mailbox *box, struct loop *loop, uv_loop_t *uv,
             uv_async_cb on_mail)
{
    *box = (struct mailbox){ .loop = loop,
                             .queue = mem_alloc(FIRST * sizeof(*box->queue)),
                             .collected =
                                 mem_alloc(FIRST * sizeof(*box->collected)),
                             .capacity = FIRST,
                             .collected_capacity = FIRST };
    CHECK(uv_mutex_init(&box->mutex) == 0);
    CHECK(uv_async_init(uv, &box->async, on_mail) == 0);
    box->async.data = box;
    CHECK(uv_timer_init(uv, &box->later) == 0);
    box->later.data = box;
}

uint32_t
mailbox_collect(struct mailbox *box)
{
    struct mail *mail;
    uint32_t capacity;

    CHECK(box->collected_count == 0);
    uv_mutex_lock(&box->mutex);
    mail = box->queue;
    capacity = box->capacity;
    box->collected_count = box->count;
    box->queue = box->collected;
    box->capacity = box->collected_capacity;
    box->count = 0;
    uv_mutex_unlock(&box->mutex);
    box->collected = mail;
    box->collected_capacity = capacity;
    return box->collected_count;
}

void
mailbox_deliver(struct mailbox *box)
{
    for (uint32_t i = 0; i < box->collected_count; i++) {
        const struct mail *mail = &box->collected[i];

        mail->fn(box->loop, mail->ptr, mail->number);
    }
    box->collected_count = 0;
    mailbox_answer_poke(box);
}

static bool
make_letter_room(struct mailbox *box)
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

static bool
post(struct mailbox *box, const struct mail *mail)
{
    bool posted;

    uv_mutex_lock(&box->mutex);
    posted = make_letter_room(box);
    if (posted) {
        box->queue[box->count] = *mail;
        box->count++;
    }
    uv_mutex_unlock(&box->mutex);
    if (posted) {
        CHECK(uv_async_send(&box->async) == 0);
    }
    return posted;
}

bool
mailbox_post(struct mailbox *box, mail_fn fn, void *ptr, uint64_t number)
{
    const struct mail mail = { .fn = fn, .ptr = ptr, .number = number };

    return post(box, &mail);
}

bool
mailbox_give(struct mailbox *box, mail_fn fn, mail_drop_fn drop, void *ptr)
{
    const struct mail mail = { .fn = fn, .drop = drop, .ptr = ptr };

    return post(box, &mail);
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

static void
on_later(uv_timer_t *timer)
{
    mailbox_poke(timer->data);
}

/* libuv counts from the beginning of the loop's turn, unless its time is
 * updated first. */
void
mailbox_poke_in(struct mailbox *box, uint64_t ns)
{
    enum { NS_A_MS = 1000000 };

    uv_update_time(box->later.loop);
    CHECK(uv_timer_start(&box->later, on_later, (ns + NS_A_MS - 1) / NS_A_MS,
                         0) == 0);
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
    uv_close((uv_handle_t *)&box->later, NULL);
}

/* The collected mails were all delivered: both happen in one callback. */
void
mailbox_fini(struct mailbox *box)
{
    CHECK(box->collected_count == 0);
    for (uint32_t i = 0; i < box->count; i++) {
        const struct mail *mail = &box->queue[i];

        if (mail->drop != NULL) {
            mail->drop(mail->ptr);
        }
    }
    mem_free(box->queue);
    mem_free(box->collected);
    uv_mutex_destroy(&box->mutex);
}
