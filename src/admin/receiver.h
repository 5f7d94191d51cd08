/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client as those see it who send it what it did not ask for at that moment:
 * messages of its subscriptions, invalidations, monitored commands. Embedded in
 * its session, and like it owned by its loop's thread; what CLIENT LIST reads
 * from other loops is atomic.
 */
#pragma once

#include "base/buf.h"
#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct conn;
struct subscriptions; /* pubsub.c */
struct tracker;       /* tracking.c */
struct reader;        /* readership.c */

enum { RECEIVER_KINDS = 3 }; /* enum pubsub_kind */

struct receiver {
    struct conn *conn; /* NULL: driven without a socket, hears nothing */
    uint64_t id;       /* of the client */
    unsigned loop;     /* index */
    const unsigned *resp;
    struct subscriptions *subscriptions;         /* NULL: none */
    _Atomic uint32_t subscribed[RECEIVER_KINDS]; /* how many of each kind */
    struct tracker *tracker;   /* NULL: CLIENT TRACKING is off */
    struct reader *reader;     /* what it has read for that; NULL: nothing */
    _Atomic uint32_t tracks;   /* how, for CLIENT LIST (tracking.h) */
    _Atomic uint64_t redirect; /* likewise; 0: to itself */
    bool is_target;            /* of another one's invalidations */
    atomic_bool monitors;
    struct receiver *next_monitor, **monitor_at; /* of its loop */
};

/* Whether it has subscriptions of any kind. Any thread. */
bool receiver_subscribes(const struct receiver *receiver);

/* Sends whole pushes (RESP3) or messages (RESP2) behind the replies so far, as
 * soon as *released is at hold_until. On the receiver's loop, from a deliver of
 * notices alone (notice.h), behind which the loop flushes (net/push.h). The
 * bytes stay the caller's and as they are. The connection may be closing
 * afterwards, but its end (client.h) comes with a later callback: a list of
 * receivers may be walked while they are pushed to. */
void receiver_push(struct receiver *receiver, struct buf *bytes,
                   uint64_t hold_until);

/* Something that it wanted is lost: it is cut. */
void receiver_cut(struct receiver *receiver);
