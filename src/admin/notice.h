/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How clients of any loop hear of what happened on one: a notice is made once,
 * and goes to the inbox of each loop that has somebody who wants it, to be
 * encoded and pushed there.
 *
 *   handler -> notice_list (the worker's) -> inboxes -> deliver, on each loop
 *
 * A worker gathers notices while its command or run executes. Before it gives
 * the stripes back it moves them to the inboxes (notice_list_close), so that
 * notices of one key arrive in the order of the changes; the loops are woken
 * afterwards (notice_list_wake). What is told waits for the disk like a reply:
 * hold_until is the position of the change.
 *
 * An inbox is bounded. While one is half full, commands that would fill it
 * wait before they begin (inboxes_are_crowded), so that who publishes fast is
 * as fast as those who read it. A loop that loses a notice all the same, for
 * want of room or memory, is told so, and cuts those of its clients who could
 * have wanted it: whoever is connected has heard everything.
 */
#pragma once

#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mailbox;

enum notice_kind {
    NOTICE_MESSAGE,        /* PUBLISH, and events of keys */
    NOTICE_SHARD_MESSAGE,  /* SPUBLISH */
    NOTICE_INVALIDATE,     /* channel: the key that changed */
    NOTICE_INVALIDATE_ALL, /* a flush */
    NOTICE_REDIRECTED, /* one of those two for another client (tracking.c) */
    NOTICE_REDIRECT_BROKEN, /* to whom it should have come is gone */
    NOTICE_MONITOR,         /* payload: the line */
};

/* Immutable once it is in a list, but for hold_until, which the closing of the
 * list sets, and the count. Any thread may read it then. */
struct notice {
    _Atomic uint32_t references;
    enum notice_kind kind;
    uint64_t hold_until;
    uint64_t from; /* the client that caused it; 0: nobody */
    struct slice channel, payload;
    char bytes[]; /* of both */
};

/* With one reference; NULL without memory. */
struct notice *notice_new(enum notice_kind kind, uint64_t from,
                          struct slice channel, struct slice payload);
struct notice *notice_ref(struct notice *notice);
void notice_unref(struct notice *notice); /* or NULL */

/* ---- inboxes ------------------------------------------------------------- */

/* What a loop does with its notices, on its thread. What it pushes to its
 * connections (net/push.h) is flushed behind each turn of deliveries. */
struct inbox_reader {
    /* `to` is as it was given to notice_list_add. False: that would take beyond
     * until_ns, and is to be called again with the same. */
    bool (*deliver)(void *ctx, const struct notice *notice, uint64_t to,
                    uint64_t until_ns);
    /* Some notices did not arrive. */
    void (*lost)(void *ctx);
    void *ctx;
};

struct inboxes;

/* limit_bytes: of notices that wait in one inbox, beyond which no other is let
 * in; may change at any time. */
struct inboxes *inboxes_new(unsigned loops,
                            const _Atomic uint64_t *limit_bytes);
void inboxes_free(struct inboxes *inboxes);

/* At start, before anything is sent there. */
void inboxes_attach(struct inboxes *inboxes, unsigned loop,
                    struct mailbox *mailbox, const struct inbox_reader *reader);

/* Whether some inbox is more than half full: from then on until it is down to a
 * quarter. Any thread. NULL: where there are none. */
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
    uint64_t gets; /* loops that have a post here, a bit each (modulo 64) */
    uint64_t lost; /* the same for what found no memory */
    uint64_t owed; /* the same for who is to be woken */
};

/* Takes a reference of its own. `to`: of an invalidation, one client's id, or 0
 * for whoever of this loop wants it; of a message, its stamp on this loop
 * (pubsub.h). Without memory, be it for the notice (NULL) or for its place
 * here, the loop will be told that it lost something. */
void notice_list_add(struct notice_list *list, struct notice *notice,
                     unsigned loop, uint64_t to);

void notice_list_close(struct notice_list *list, struct inboxes *inboxes,
                       uint64_t hold_until);
void notice_list_wake(struct notice_list *list, struct inboxes *inboxes);
void notice_list_fini(struct notice_list *list);
