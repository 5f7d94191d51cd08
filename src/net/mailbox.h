/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A loop's mailbox: the only way for another thread to make a loop do
 * something. A bounded queue of calls and one uv_async. Any thread may post;
 * the owner makes the calls, in order. Its mutex is a leaf lock.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct loop;

typedef void (*mail_fn)(struct loop *loop, void *ptr, uint64_t number);
typedef void (*mail_drop_fn)(void *ptr);

struct mail {
    mail_fn fn;
    mail_drop_fn drop; /* NULL: the mail owns nothing */
    void *ptr;
    uint64_t number;
};

struct mailbox {
    uv_async_t async;
    uv_timer_t later; /* for mailbox_poke_in; only the owner uses it */
    uv_mutex_t mutex;
    struct mail *queue; /* guarded by mutex */
    uint32_t count, capacity;
    struct mail *collected; /* swapped with queue; only the owner uses it */
    uint32_t collected_count, collected_capacity;
    struct loop *loop;        /* the owner, for the calls */
    void (*poked)(void *ctx); /* NULL: pokes are not used */
    void *poked_ctx;
    atomic_bool poke;
};

enum { MAILBOX_MAX = 65536 };

/* Prepares the mailbox. on_mail is called on the owner after a post or a poke,
 * and must collect and deliver. Its handle's data is the mailbox. */
void mailbox_init(struct mailbox *mailbox, struct loop *loop, uv_loop_t *uv,
                  uv_async_cb on_mail);

/* Returns false if the queue is full or memory is short: the call will not be
 * made. */
bool mailbox_post(struct mailbox *mailbox, mail_fn fn, void *ptr,
                  uint64_t number);

/* Posts a call that owns PTR. If the loop stops before it makes the call,
 * mailbox_fini calls `drop` instead. Returns false like mailbox_post: then PTR
 * still belongs to the caller. */
bool mailbox_give(struct mailbox *mailbox, mail_fn fn, mail_drop_fn drop,
                  void *ptr);

/* A poke is a call that needs no place in the queue, so that it cannot fail:
 * `poked` is called at least once after each poke. Call mailbox_on_poke before
 * the first poke. */
void mailbox_on_poke(struct mailbox *mailbox, void (*poked)(void *ctx),
                     void *ctx);
void mailbox_poke(struct mailbox *mailbox);

/* Pokes after this time, in whole milliseconds; a second call sets another
 * time. Call it on the owner. */
void mailbox_poke_in(struct mailbox *mailbox, uint64_t ns);

/* Takes over the calls that were posted so far, and returns how many they are.
 * Call it on the owner. */
uint32_t mailbox_collect(struct mailbox *mailbox);

/* Makes the calls that were collected, then answers a poke. Call it on the
 * owner. */
void mailbox_deliver(struct mailbox *mailbox);

/* Calls `poked` now if there was a poke since the last one. Call it on the
 * owner. */
void mailbox_answer_poke(struct mailbox *mailbox);

/* mailbox_close() closes the handles. mailbox_fini() is called after the loop
 * has run their close callbacks, and when no thread posts any more. */
void mailbox_close(struct mailbox *mailbox);
void mailbox_fini(struct mailbox *mailbox);
