/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Publishes messages: counts the subscribers of all loops, for the reply of
 * PUBLISH, and sends a notice to each loop that has some. Any thread.
 */
#pragma once

#include "push/notice.h"
#include "push/pubsub.h"

enum { PUBSUB_LOOPS_MAX = 64 };

/* How far the subscribers of one loop are counted: CHANNEL -> PATTERNS -> DONE.
 */
enum publishing_stage {
    PUBLISHING_CHANNEL, /* the loop's slot has not been read yet */
    PUBLISHING_PATTERNS,
    PUBLISHING_DONE /* only deferred patterns may be left */
};

/* A message whose subscribers are being counted, in several calls. A client
 * counts once for the channel and once for each pattern. */
struct publishing {
    enum notice_kind kind; /* NOTICE_MESSAGE or NOTICE_SHARD_MESSAGE */
    struct slice channel;  /* borrowed; may move between two calls */
    uint64_t count;
    /* The loop that is being counted, and its state: */
    unsigned loop;
    enum publishing_stage stage;
    bool wanted;         /* the loop has subscribers, or may have some */
    uint64_t cursor;     /* cursor in the map of the loop's patterns */
    struct buf deferred; /* counts and patterns for later matching */
    /* The message's stamp on each loop; 0: no subscribers there. */
    uint64_t stamp[PUBSUB_LOOPS_MAX];
};

/* Continues counting. False: until_ns has passed, and there is more to count.
 */
bool publishing_count(struct pubsub *pubsub, struct publishing *publishing,
                      uint64_t until_ns);

/* Adds a notice for each loop with subscribers, after all subscribers were
 * counted. */
void publishing_send(struct pubsub *pubsub, const struct publishing *publishing,
                     uint64_t from, struct slice payload,
                     struct notice_list *list);
void publishing_fini(struct publishing *publishing);

/* Publishes a keyspace event at once, without a count. The caller has locks, so
 * this does little work: it adds a notice for each loop that may have
 * subscribers, and the loop finds them. */
void pubsub_publish_event(struct pubsub *pubsub, uint64_t from,
                          struct slice channel, struct slice payload,
                          struct notice_list *list);
