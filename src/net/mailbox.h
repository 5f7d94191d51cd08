/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The only way to make another loop do something: a bounded queue of calls and
 * one uv_async. Posting is for any thread; calls run on the owner, in order.
 * A leaf lock: nothing else is taken while it is held.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct loop;

typedef void (*mail_fn)(struct loop *loop, void *ptr, uint64_t number);

struct mail {
    mail_fn fn;
    void *ptr;
    uint64_t number;
};

struct mailbox {
    uv_async_t async;
    uv_mutex_t mutex;
    struct mail *queue; /* guarded by mutex */
    uint32_t count, capacity;
    struct mail *drain; /* owner only: swapped with queue */
    uint32_t drain_capacity;
    struct loop *loop;
    void (*poked)(void *ctx); /* NULL: nobody is poked */
    void *poked_ctx;
    atomic_bool poke;
};

enum { MAILBOX_MAX = 65536 };

void mailbox_init(struct mailbox *mailbox, struct loop *loop);

/* False if the box is full or memory is short: the call will not happen. */
bool mailbox_post(struct mailbox *mailbox, mail_fn fn, void *ptr,
                  uint64_t number);

/* A call that needs no place in the queue, so that it cannot fail: it runs at
 * least once after each poke. Set before anybody pokes. */
void mailbox_on_poke(struct mailbox *mailbox, void (*poked)(void *ctx),
                     void *ctx);
void mailbox_poke(struct mailbox *mailbox);

/* On the owner: makes that call now if a poke waits for it. */
void mailbox_answer_poke(struct mailbox *mailbox);

/* Closes the handle; fini after the loop has run its close callbacks. */
void mailbox_close(struct mailbox *mailbox);
void mailbox_fini(struct mailbox *mailbox);
