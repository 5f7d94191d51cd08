/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client as a receiver of pushes, which it gets without a request: messages
 * of its subscriptions, invalidations, monitored commands. Embedded in its
 * session and owned by its loop's thread. The fields that CLIENT LIST reads
 * from other loops are atomic.
 */
#pragma once

#include "base/buf.h"
#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct conn;
struct subscriptions; /* pubsub_slot.h */
struct tracker;       /* tracking.c */
struct reader;        /* readership.c */

/* The kinds of subscriptions. A subscription to a filter (pubsub_feed.h) has
 * the name of its topic, not of its key. */
enum pubsub_kind {
    PUBSUB_CHANNEL,
    PUBSUB_PATTERN,
    PUBSUB_SHARD,
    PUBSUB_FILTER
};
enum { PUBSUB_KINDS = PUBSUB_FILTER + 1 };

struct receiver {
    struct conn *conn; /* NULL: no socket, so it gets no pushes */
    uint64_t id;       /* id of the client */
    unsigned loop;     /* index of its loop */
    bool is_target;    /* gets the invalidations of other clients */
    atomic_bool monitors;
    _Atomic uint8_t tracks; /* its mode, for CLIENT LIST (tracking.h) */
    const unsigned *resp;
    struct subscriptions *subscriptions;       /* NULL: none */
    _Atomic uint32_t subscribed[PUBSUB_KINDS]; /* how many of each kind */
    struct tracker *tracker;   /* NULL: CLIENT TRACKING is off */
    struct reader *reader;     /* the keys it has read; NULL: none */
    _Atomic uint64_t redirect; /* its target, for CLIENT LIST; 0: itself */
    struct receiver *next_monitor, **monitor_at; /* the list of its loop */
};

/* Returns whether a client has subscriptions of any kind. Any thread. */
bool receiver_subscribes(const struct receiver *receiver);

/* Sends whole pushes (RESP3) or messages (RESP2) behind the replies so far, as
 * soon as the log is released up to hold_until. Call it only from `deliver` of
 * an inbox_reader (notice.h), on the receiver's loop, which flushes afterwards
 * (net/push.h). The caller keeps the bytes. The connection may be closing
 * afterwards, but the client ends in a later callback, so a list of receivers
 * may be walked while they are pushed to. */
void receiver_push(struct receiver *receiver, struct buf *bytes,
                   uint64_t hold_until);

/* Closes the connection of a client after a push for it was lost: a connected
 * client has received every push. */
void receiver_cut(struct receiver *receiver);
