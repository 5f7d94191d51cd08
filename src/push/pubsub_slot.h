/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The data of pub/sub, shared by pubsub.c, pubsub_publish.c and
 * pubsub_deliver.c. Each loop has a slot. It maps names of channels and
 * patterns to topics. A topic lists its subscriptions in the order in which
 * they were made. A receiver maps the same names to its own subscriptions:
 *
 *   slot[loop].topics[kind]: name -> topic -> subscription -> subscription
 *   receiver->subscriptions->own[kind]: name -----^
 *
 * The global map `known` counts the loops that have a name, so that PUBSUB
 * need not search all slots.
 *
 * Only the slot's own loop writes to it, under the slot's lock. That loop reads
 * it without the lock. Both locks are leaves, and each is locked for a bounded
 * number of names only.
 */
#pragma once

#include "base/map.h"
#include "push/receiver.h"

#include <uv.h>

/* How much one locked section may do: steps of matching, buckets of a map. */
enum { LOCKED_WORK = 32 * 1024, LOCKED_BUCKETS = 256 };

struct topic;

struct subscription {
    struct topic *topic;
    struct receiver *receiver;
    uint64_t since; /* the slot's stamp when it was made */
    size_t sent;    /* of the topic's gathered records: how many bytes it has */
    struct subscription *next, **at; /* at: the pointer that leads here */
};

enum { FEED_KEPT_BYTES = 256 }; /* of an empty buffer of records */

/* What a loop gathers for the subscribers of one filter, before it sends it to
 * all of them (pubsub_feed.c). The loop's alone. */
struct gathered {
    struct buf records;
    size_t last; /* where the last record begins; SIZE_MAX: another record
                    must not be merged into it */
    uint64_t hold_until;
    struct topic *topic;
    struct gathered *next, **at; /* in the slot's list; at NULL: not there */
};

struct topic {
    struct subscription *first, **end;
    uint64_t count;
    struct topic *next, **at;  /* patterns: in the slot's list */
    struct gathered *gathered; /* of a filter only */
    uint64_t hash;             /* of the filter's key */
    size_t len;
    char name[]; /* of a pattern or filter only */
};

/* How far the loop is with a message that it delivers in pieces:
 *
 *   NONE -> CHANNEL -> MATCH <-> PATTERN
 *    ^                   |
 *    +-------------------+  after the last pattern
 */
enum delivery_stage {
    DELIVERY_NONE,
    DELIVERY_CHANNEL, /* sends to the subscriptions of its channel */
    DELIVERY_MATCH,   /* `topic` is the next pattern to match; NULL: the end */
    DELIVERY_PATTERN  /* sends to the subscriptions of `topic`, which matched */
};
struct delivery {
    enum delivery_stage stage;
    struct topic *topic;
    struct subscription *next; /* of the topic */
};

/* What a loop has gathered for the subscribers of filters, and how far it is
 * with sending that. */
struct feeding {
    struct gathered *first, **end; /* with records, the oldest first */
    bool sending;                  /* not all of it has left */
    bool begun;                    /* the first one is being sent, */
    struct subscription *next;     /* to this one next */
    uint64_t due_ns;               /* when the first one may be sent */
    uint64_t rests_until_ns;       /* nothing is sent before */
    uint64_t took_ns;              /* CPU, to send, since the last rest */
};

struct slot {
    _Alignas(64) uv_mutex_t mutex;
    struct map topics[PUBSUB_KINDS];
    struct topic *patterns, **patterns_end;
    uint64_t stamp;           /* of the last message; guarded by mutex */
    _Atomic uint64_t size;    /* topics of all kinds; 0: publishers skip it */
    struct delivery delivery; /* the loop's alone */
    struct feeding feeding;   /* likewise */
};

struct known {
    uint64_t loops; /* how many have this name */
};

/* Places of the counts of filters with subscribers, by their key's hash. */
enum { FEED_PLACES = 4096 };

struct pubsub {
    uv_mutex_t mutex;
    struct map known[PUBSUB_KINDS]; /* guarded by mutex */
    unsigned loops;
    struct slot *slots;
    _Atomic uint64_t *announced; /* pubsub_announce; NULL: nowhere */
    uint64_t flag;
    _Atomic uint32_t feeds[FEED_PLACES]; /* names; keys may share a place */
};

/* The subscriptions of one receiver. */
struct subscriptions {
    struct map own[PUBSUB_KINDS];
    size_t bytes; /* of all names */
};
