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

#include <stddef.h>

struct buf;

enum pubsub_kind { PUBSUB_CHANNEL, PUBSUB_PATTERN, PUBSUB_SHARD };
enum { PUBSUB_KINDS = PUBSUB_SHARD + 1 };

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

/* Any one of them, to unsubscribe one by one; false if there is none. */
bool pubsub_any(const struct receiver *receiver, enum pubsub_kind kind,
                struct slice *ret_name);

/* The end of a client, or RESET. */
void pubsub_leave(struct pubsub *pubsub, struct receiver *receiver);

/* Pushes a message to who of this loop had subscribed to it by then. stamp: as
 * `to` of the notice's post. */
void pubsub_deliver(struct pubsub *pubsub, unsigned loop,
                    const struct notice *notice, uint64_t stamp);

/* Cuts everybody of this loop who has subscriptions: some message was lost. */
void pubsub_cut(struct pubsub *pubsub, unsigned loop);

/* ---- any thread ---------------------------------------------------------- */

/* Adds a notice for each loop where somebody listens, and returns how many
 * will hear it: a client counts once for the channel and once for each of its
 * patterns. kind: NOTICE_MESSAGE or NOTICE_SHARD_MESSAGE. */
uint64_t pubsub_publish(struct pubsub *pubsub, enum notice_kind kind,
                        uint64_t from, struct slice channel,
                        struct slice payload, struct notice_list *list);

/* For PUBSUB and INFO: how many subscribe to one name; how many names there
 * are; and those that match the pattern, appended as bulk strings (any: all of
 * them), with their number. */
uint64_t pubsub_subscribers(struct pubsub *pubsub, enum pubsub_kind kind,
                            struct slice name);
uint64_t pubsub_names(struct pubsub *pubsub, enum pubsub_kind kind);
uint64_t pubsub_list(struct pubsub *pubsub, enum pubsub_kind kind,
                     struct slice pattern, bool any, struct buf *ret_bulks);
