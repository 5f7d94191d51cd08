/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What pubsub.c, pubsub_publish.c and pubsub_deliver.c share: a slot maps names
 * to topics, and a topic has the list of its subscriptions, in the order in
 * which they came; a receiver maps the same names to its own subscriptions. So
 * that PUBSUB need not look through all slots, the names that any loop has are
 * counted once more, in a map for all.
 *
 *   slot[loop].topics[kind]: name -> topic -> subscription -> subscription
 *   receiver->subscriptions->own[kind]: name -----^
 *
 * The loop reads its own slot without the lock, since only it writes there.
 * Neither lock is taken while the other is held, nor held for longer than some
 * names take.
 */
#pragma once

#include "admin/pubsub.h"
#include "base/map.h"

#include <uv.h>

/* In one hold of a lock: of matching, and of buckets of a map. */
enum { LOCKED_WORK = 32 * 1024, LOCKED_BUCKETS = 256 };

struct topic;

struct subscription {
    struct topic *topic;
    struct receiver *receiver;
    uint64_t since; /* the slot's stamp at that time */
    struct subscription *next, **at;
};

struct topic {
    struct subscription *first, **end;
    uint64_t count;
    struct topic *next, **at; /* of the slot's patterns */
    size_t len;
    char name[]; /* of a pattern */
};

/* The message that this loop delivers: to the subscriptions of its channel,
 * then to those of each pattern that matches. */
struct delivery {
    bool begun, patterns; /* the channel is done */
    bool matched;         /* the topic is; else it is to be matched yet */
    struct topic *topic;
    struct subscription *next; /* of the topic */
};

struct slot {
    _Alignas(64) uv_mutex_t mutex;
    struct map topics[PUBSUB_KINDS]; /* written under mutex by the loop */
    struct topic *patterns, **patterns_end;
    uint64_t stamp;           /* guarded by mutex */
    _Atomic uint64_t size;    /* of all topics: a publisher takes no lock where
                                 it is 0 */
    struct delivery delivery; /* the loop's alone */
};

/* How many loops have a name. */
struct known {
    uint64_t loops;
};

struct pubsub {
    uv_mutex_t mutex;
    struct map known[PUBSUB_KINDS]; /* guarded by mutex */
    unsigned loops;
    struct slot *slots;
};

struct subscriptions {
    struct map own[PUBSUB_KINDS];
    size_t bytes;
};
