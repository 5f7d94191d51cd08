/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pub/sub: which client subscribes to which channels and patterns
 * (pubsub_slot.h draws the data). pubsub_publish.h sends messages to the loops,
 * pubsub_deliver.h from a loop to its clients.
 *
 * Messages take time to arrive. So a message gets a stamp on each loop that has
 * subscribers, and a subscription only gets messages with a later stamp than
 * its own: those that were published after it was made.
 */
#pragma once

#include "base/buf.h"
#include "push/receiver.h"

#include <stddef.h>

struct pubsub;

struct pubsub *pubsub_new(unsigned loops);

/* Keeps FLAG set in *word, from now on, while any filter has subscribers. Call
 * it at the start. */
void pubsub_announce(struct pubsub *pubsub, _Atomic uint64_t *word,
                     uint64_t flag);

/* Frees it. All receivers must have left. */
void pubsub_free(struct pubsub *pubsub);

/* ---- on the receiver's loop ---------------------------------------------- */

enum pubsub_result { PUBSUB_OK, PUBSUB_ALREADY, PUBSUB_NONE, PUBSUB_NOMEM };
enum pubsub_result pubsub_subscribe(struct pubsub *pubsub,
                                    struct receiver *receiver,
                                    enum pubsub_kind kind, struct slice name);
/* Subscribes to a filter (PUBSUB_FILTER), by the name of its topic and the hash
 * of its key. Call it under the lock of the key's stripe: then the subscriber
 * is told each later change of the key. */
enum pubsub_result pubsub_subscribe_filter(struct pubsub *pubsub,
                                           struct receiver *receiver,
                                           struct slice name, uint64_t hash);
enum pubsub_result pubsub_unsubscribe(struct pubsub *pubsub,
                                      struct receiver *receiver,
                                      enum pubsub_kind kind, struct slice name);
bool pubsub_has(const struct receiver *receiver, enum pubsub_kind kind,
                struct slice name);

/* Return how many subscriptions of a kind a client has (any thread), and the
 * bytes of all their names. */
size_t pubsub_count(const struct receiver *receiver, enum pubsub_kind kind);
size_t pubsub_bytes(const struct receiver *receiver);

/* Estimates the memory of a client's subscriptions, as if it shared no channel
 * with others. */
size_t pubsub_memory(const struct receiver *receiver);

/* Finds some subscription, so that the caller can remove them one by one.
 * False: there is none. The name is borrowed until the subscription is removed.
 */
bool pubsub_any(const struct receiver *receiver, enum pubsub_kind kind,
                struct slice *ret_name);

/* Visits all subscriptions; visit must not change them. Stops and returns false
 * when visit returns false. */
typedef bool (*pubsub_visit_fn)(void *ctx, enum pubsub_kind kind,
                                struct slice name);
bool pubsub_each(const struct receiver *receiver, pubsub_visit_fn visit,
                 void *ctx);

/* Removes all subscriptions of a client, at its end or for RESET. */
void pubsub_leave(struct pubsub *pubsub, struct receiver *receiver);

/* ---- any thread: for PUBSUB and INFO ------------------------------------- */

/* Return how many clients subscribe to a name, and how many names there are. */
uint64_t pubsub_subscribers(struct pubsub *pubsub, enum pubsub_kind kind,
                            struct slice name);
uint64_t pubsub_names(struct pubsub *pubsub, enum pubsub_kind kind);

/* Appends some names (buf_append_item). Returns the cursor for the next call.
 * The cursor 0 begins, and a returned 0 is the end. */
uint64_t pubsub_names_from(struct pubsub *pubsub, enum pubsub_kind kind,
                           uint64_t cursor, struct buf *ret_names);
