/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who listens to which channels and patterns. One slot a loop: changed by that
 * loop alone, read by every publisher under the slot's leaf lock, so that
 * PUBLISH can say how many will hear it.
 *
 * Each message has a stamp on each loop where somebody listens, drawn under
 * that lock: a subscription hears only what was published after it was made,
 * although messages take their time to arrive.
 */
#pragma once

#include "admin/notice.h"
#include "admin/receiver.h"
#include "base/buf.h"

#include <stddef.h>

enum pubsub_kind { PUBSUB_CHANNEL, PUBSUB_PATTERN, PUBSUB_SHARD };
enum { PUBSUB_KINDS = PUBSUB_SHARD + 1, PUBSUB_LOOPS_MAX = 64 };

struct pubsub;

struct pubsub *pubsub_new(unsigned loops);
void pubsub_free(struct pubsub *pubsub);

/* ---- on the receiver's loop ---------------------------------------------- */

enum pubsub_result { PUBSUB_OK, PUBSUB_ALREADY, PUBSUB_NONE, PUBSUB_NOMEM };
enum pubsub_result pubsub_subscribe(struct pubsub *pubsub,
                                    struct receiver *receiver,
                                    enum pubsub_kind kind, struct slice name);
enum pubsub_result pubsub_unsubscribe(struct pubsub *pubsub,
                                      struct receiver *receiver,
                                      enum pubsub_kind kind, struct slice name);
bool pubsub_has(const struct receiver *receiver, enum pubsub_kind kind,
                struct slice name);

/* How many of a kind this client has (any thread), and the bytes of all their
 * names. */
size_t pubsub_count(const struct receiver *receiver, enum pubsub_kind kind);
size_t pubsub_bytes(const struct receiver *receiver);

/* The memory that its subscriptions take, as if nobody shared a channel. */
size_t pubsub_memory(const struct receiver *receiver);

/* Any one of them, to unsubscribe one by one; false if there is none. */
bool pubsub_any(const struct receiver *receiver, enum pubsub_kind kind,
                struct slice *ret_name);

/* The end of a client, or RESET. */
void pubsub_leave(struct pubsub *pubsub, struct receiver *receiver);

/* Pushes a message to who of this loop had subscribed to it by then. stamp: as
 * `to` of the notice's post. False: there are more of them than could be served
 * until then, and it is to be called again with the same notice. Patterns that
 * are too much work for this channel cut those who have them. */
bool pubsub_deliver(struct pubsub *pubsub, unsigned loop,
                    const struct notice *notice, uint64_t stamp,
                    uint64_t until_ns);

/* Cuts everybody of this loop who has subscriptions: some message was lost. */
void pubsub_cut(struct pubsub *pubsub, unsigned loop);

/* ---- any thread ---------------------------------------------------------- */

/* A message on its way: how many will hear it, which is counted a piece at a
 * time, and on which loops. A client counts once for the channel and once for
 * each of its patterns. kind: NOTICE_MESSAGE or NOTICE_SHARD_MESSAGE. */
struct publishing {
    enum notice_kind kind;
    struct slice channel; /* the caller's; may move between two pieces */
    uint64_t count;
    unsigned loop;              /* that is being counted */
    bool begun, counted, heard; /* there */
    uint64_t cursor;            /* among its patterns */
    struct buf later; /* patterns to match without a lock, and their counts */
    uint64_t stamp[PUBSUB_LOOPS_MAX]; /* 0: nobody listens there */
};

/* Counts on. False: until_ns has passed, and there is more to count. */
bool pubsub_count_on(struct pubsub *pubsub, struct publishing *publishing,
                     uint64_t until_ns);

/* When all is counted: adds a notice for each loop where somebody listens. */
void pubsub_publish(struct pubsub *pubsub, const struct publishing *publishing,
                    uint64_t from, struct slice payload,
                    struct notice_list *list);
void publishing_fini(struct publishing *publishing);

/* Publishes at once what nobody counts, locks being held: little work is done
 * here, and a loop where somebody may listen gets the notice and finds out. */
void pubsub_tell(struct pubsub *pubsub, uint64_t from, struct slice channel,
                 struct slice payload, struct notice_list *list);

/* For PUBSUB and INFO: how many subscribe to one name, and how many names there
 * are. */
uint64_t pubsub_subscribers(struct pubsub *pubsub, enum pubsub_kind kind,
                            struct slice name);
uint64_t pubsub_names(struct pubsub *pubsub, enum pubsub_kind kind);

/* Appends some names (buf_append_item), and returns the cursor to go on with: 0
 * begins, and is the end. */
uint64_t pubsub_names_from(struct pubsub *pubsub, enum pubsub_kind kind,
                           uint64_t cursor, struct buf *ret_names);
