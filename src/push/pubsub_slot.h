/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The data of pub/sub, shared by pubsub.c, pubsub_publish.c, pubsub_deliver.c
 * and pubsub_feed.c. Each loop has a slot, which maps names of channels,
 * patterns and filters to topics. A topic lists its subscriptions in the order
 * in which they were made. A receiver maps the same names to its subscriptions:
 *
 *   slot[loop].topics[kind]: name -> topic -> subscription -> subscription
 *   receiver->subscriptions->own[kind]: name -----^
 *
 * The global map `known` counts the loops that have a name, so that PUBSUB
 * need not search all slots.
 *
 * Only the slot's own loop changes its topics, under the slot's lock, and reads
 * them without it. Any thread counts up the stamp under that lock. This lock
 * and the one of `known` are leaves, locked for a bounded number of names only.
 */
#pragma once

#include "base/map.h"
#include "push/receiver.h"

#include <uv.h>

/* The most that one locked section may do: steps of matching, and buckets of a
 * map. */
enum { LOCKED_WORK = 32 * 1024, LOCKED_BUCKETS = 256 };

struct topic;

struct subscription {
    struct topic *topic;
    struct receiver *receiver;
    uint64_t since; /* the slot's stamp when the subscription was made */
    size_t sent;    /* bytes of the topic's records already sent */
    struct subscription *next, **at; /* at: the pointer that leads here */
};

enum { FEED_KEPT_BYTES = 256 }; /* kept by an empty buffer */

/* What a loop gathers for the subscribers of one filter, before it sends it to
 * all of them (pubsub_feed.c). Only the loop uses it. */
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
    struct gathered *gathered; /* only for a filter */
    uint64_t hash;             /* hash of the filter's key */
    size_t len;
    char name[]; /* only for a pattern or a filter */
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
    struct subscription *next; /* the next one of the topic */
};

/* What a loop has gathered for the subscribers of filters, and how far it is
 * with sending that. */
struct feeding {
    struct gathered *first, **end; /* those with records, the oldest first */
    bool sending;                  /* a sending is not complete */
    bool begun;                    /* the first one is being sent */
    struct subscription *next;     /* the subscriber that gets it next */
    uint64_t due_ns;               /* when the first one may be sent */
    uint64_t rests_until_ns;       /* nothing is sent before this time */
    uint64_t took_ns;              /* CPU time of sending since the last rest */
};

struct slot {
    _Alignas(64) uv_mutex_t mutex;
    struct map topics[PUBSUB_KINDS];
    struct topic *patterns, **patterns_end;
    uint64_t stamp;           /* stamp of the last message; guarded by mutex */
    _Atomic uint64_t size;    /* topics of all kinds; 0: publishers skip it */
    struct delivery delivery; /* only the loop uses it */
    struct feeding feeding;   /* only the loop uses it */
};

struct known {
    uint64_t loops; /* how many loops have this name */
};

/* How many counters of filters with subscribers there are; a key's hash selects
 * one. */
enum { FEED_PLACES = 4096 };

struct pubsub {
    uv_mutex_t mutex;
    struct map known[PUBSUB_KINDS]; /* guarded by mutex */
    unsigned loops;
    struct slot *slots;
    _Atomic uint64_t *announced; /* the word of pubsub_announce; NULL: none */
    uint64_t flag;
    _Atomic uint32_t feeds[FEED_PLACES]; /* counts; keys may share a place */
};

/* The subscriptions of one receiver. */
struct subscriptions {
    struct map own[PUBSUB_KINDS];
    size_t bytes; /* bytes of all names */
};
