/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A notice is a message, an invalidation, a MONITOR line or a record about a
 * filter, on its way from one loop to the clients of all loops. There is one
 * copy of it: each loop that has clients for it gets a reference in its inbox,
 * encodes it and pushes it.
 *
 *   handler -> notice_list (the worker's) -> inboxes -> deliver, on each loop
 *
 * A worker collects notices in its list while a command or run executes. Before
 * it releases the stripes it moves them to the inboxes (notice_list_close), so
 * that notices about one key arrive in the order of its changes. It wakes the
 * loops when it has no lock (notice_list_wake). Like a reply, a push waits
 * until the change is durable: hold_until is its position in the log.
 *
 * An inbox is bounded. While one is more than half full, commands that would
 * fill it wait before they begin (inboxes_are_crowded), so that publishers slow
 * down to the speed of their subscribers. A loop can still lose a notice, for
 * lack of space or memory. Then it cuts (closes the connections of) all clients
 * that could have wanted it, so a client that stays connected has received
 * every push.
 */
#pragma once

#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mailbox;

enum notice_kind {
    NOTICE_MESSAGE,         /* PUBLISH, and keyspace events */
    NOTICE_SHARD_MESSAGE,   /* SPUBLISH */
    NOTICE_INVALIDATE,      /* channel: the key that changed */
    NOTICE_INVALIDATE_ALL,  /* after a flush */
    NOTICE_REDIRECTED,      /* an invalidation, for a target (targets.h) */
    NOTICE_REDIRECT_BROKEN, /* tells that the target is gone */
    NOTICE_MONITOR,         /* payload: the line */
    /* About filters (pubsub_feed.h); channel: the topic's name. */
    NOTICE_FILTER,
    NOTICE_FILTERS, /* about all filters of a database; channel: its number */
    NOTICE_FILTER_ANSWER /* for one client */
};

/* Any thread may read a notice that is in a list. Only hold_until, which
 * notice_list_close sets, and the count of references change then. */
struct notice {
    _Atomic uint32_t references;
    enum notice_kind kind;
    uint64_t hold_until;
    uint64_t from; /* the id of the client that caused it; 0: none */
    struct slice channel, payload;
    char bytes[]; /* the bytes of channel and payload */
};

/* Makes a notice with one reference. NULL: no memory. */
struct notice *notice_new(enum notice_kind kind, uint64_t from,
                          struct slice channel, struct slice payload);
struct notice *notice_ref(struct notice *notice);
void notice_unref(struct notice *notice); /* NULL is fine */

/* ---- inboxes ------------------------------------------------------------- */

/* How a loop handles its notices, on its thread. It flushes its pushes
 * (net/push.h) after each turn of deliveries. */
struct inbox_reader {
    /* Called before notices are delivered, also when there are none
     * (inboxes_wake). Optional. */
    void (*woken)(void *ctx);
    /* Delivers a notice; `to` is the argument of notice_list_add. False:
     * until_ns has passed; the inbox calls again with the same notice. */
    bool (*deliver)(void *ctx, const struct notice *notice, uint64_t to,
                    uint64_t until_ns);
    /* Sends what deliver has gathered, if it is due, and stops at until_ns.
     * Returns when to call it again, by the monotonic clock; 0: nothing is
     * gathered. If that time is past, it is called again before more is
     * delivered. Optional. */
    uint64_t (*send)(void *ctx, uint64_t until_ns);
    /* Called after some notices were lost. */
    void (*lost)(void *ctx);
    void *ctx;
};

struct inboxes;

/* Makes an inbox for each loop. An inbox with *limit_bytes of notices accepts
 * no more; the limit may change at any time. */
struct inboxes *inboxes_new(unsigned loops,
                            const _Atomic uint64_t *limit_bytes);
void inboxes_free(struct inboxes *inboxes);

/* Connects an inbox to its loop, at the start, before any notice is sent. */
void inboxes_attach(struct inboxes *inboxes, unsigned loop,
                    struct mailbox *mailbox, const struct inbox_reader *reader);

/* Wakes all loops, so that each calls `woken`. Cannot fail. Any thread. */
void inboxes_wake(struct inboxes *inboxes);

/* Returns whether any inbox is crowded. An inbox becomes crowded when it is
 * half full, and stays so until it is a quarter full. Any thread. NULL is fine.
 */
bool inboxes_are_crowded(const struct inboxes *inboxes);

/* ---- a worker's list ----------------------------------------------------- */

struct notice_post {
    struct notice *notice; /* owned */
    uint64_t to;
    unsigned loop;
};

/* All zero: empty. Belongs to one worker. */
struct notice_list {
    struct notice_post *posts;
    uint32_t count, capacity;
    /* Sets of loops, one bit for each (index modulo 64): */
    uint64_t posted;  /* loops with a post in this list */
    uint64_t lost;    /* loops that lost a notice for lack of memory */
    uint64_t to_wake; /* loops that notice_list_wake wakes */
};

/* Adds a reference to a notice for a loop. For an invalidation, `to` is the id
 * of one client, or 0 for all clients of the loop that want it. For a message,
 * `to` is its stamp on the loop (pubsub.h). For an answer about a filter it is
 * the id of the client. If there was no memory for the notice (it is NULL), or
 * there is none for the post, the loop is told that it has lost a notice. */
void notice_list_add(struct notice_list *list, struct notice *notice,
                     unsigned loop, uint64_t to);

/* Moves all notices to the inboxes, and sets their hold_until. */
void notice_list_close(struct notice_list *list, struct inboxes *inboxes,
                       uint64_t hold_until);

/* Wakes the loops that got notices since the last call. */
void notice_list_wake(struct notice_list *list, struct inboxes *inboxes);
void notice_list_fini(struct notice_list *list);
