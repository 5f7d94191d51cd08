/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What programs with a copy of a filter are told about it: the fourth kind of
 * subscription (BF.SUBSCRIBE). A writer reports each change under the lock of
 * the key's stripe, so that the records of a key keep the order of its changes:
 *
 *   writer -> notice -> inbox -> gathered on each loop -> frames to its clients
 *
 * A push costs 6 to 8 us of CPU, however short it is. So a loop gathers records
 * for some milliseconds, and for three times as long as the last sending took:
 * subscribers get at most a quarter of its time. The answer to BF.SUBSCRIBE
 * takes the same way, to one client. The loop first sends this client what it
 * has gathered, so the answer follows all changes acknowledged before it.
 *
 * A frame, each word of which is a bulk string:
 *
 *   bf.message KEY is 1 INCARNATION ITEMS LAYERS MS     the answer: a filter
 *   bf.message KEY is 1 missing                         the answer: no filter
 *   bf.message KEY add PAIRS [MS]     items, as their hashes; of ageing filters
 *                                     with the time of the add
 *   bf.message KEY deleted N          items of a deletable filter
 *   bf.message KEY gone               the key does not exist any more
 *   bf.message KEY changed            anything else
 */
#pragma once

#include "push/notice.h"
#include "push/pubsub.h"

struct loop;

/* What a change does to a filter. */
enum feed_kind {
    FEED_NOTHING, /* its bits stay, or their change was reported already */
    FEED_ADD,
    FEED_DELETED,
    FEED_GONE,
    FEED_CHANGED
};

struct feed_change {
    enum feed_kind kind;
    uint64_t number;    /* ADD (ageing filter): time; DELETED: items */
    struct slice pairs; /* ADD: 16 bytes for each item */
};

/* A key, by which a topic is named and found. */
struct feed_key {
    uint32_t db;
    struct slice name;
    uint64_t hash;
};

/* Appends the name of a key's topic: the database in 4 bytes, and the key. */
enum { FEED_DB_BYTES = 4 };
void pubsub_feed_name(struct buf *ret_name, const struct feed_key *key);

/* Return the key and the database in such a name. */
struct slice pubsub_feed_key(struct slice name);
uint32_t pubsub_feed_db(struct slice name);

/* Returns whether a key with this hash may have subscribers. Call it under the
 * lock of the key's stripe. */
bool pubsub_feeds(const struct pubsub *pubsub, uint64_t hash);

/* Tells the subscribers of a key about a change. Call it under the lock of the
 * key's stripe. */
void pubsub_feed(struct pubsub *pubsub, const struct feed_key *key,
                 const struct feed_change *change, struct notice_list *list);

/* Tells all subscribers of filters in a database, or in all databases
 * (FEED_ALL_DBS). Call it under the raised gate. */
#define FEED_ALL_DBS UINT32_MAX
void pubsub_feed_all(struct pubsub *pubsub, uint32_t db, enum feed_kind kind,
                     struct notice_list *list);

/* What BF.SUBSCRIBE answers. */
struct feed_answer {
    bool missing;
    uint64_t incarnation, items, layers, at_ms;
};

/* Posts the answer for a client that has subscribed to the key, to its own
 * loop. Call it under the lock of the key's stripe. */
void pubsub_feed_answer(const struct receiver *receiver,
                        const struct feed_key *key,
                        const struct feed_answer *answer,
                        struct notice_list *list);

/* ---- on the loop --------------------------------------------------------- */

/* Gathers the record of a notice. The records are due gather_ns after the first
 * of them, later while the loop rests, and at once if one filter has many. */
void pubsub_feed_gather(struct pubsub *pubsub, unsigned loop,
                        const struct notice *notice, uint64_t gather_ns);

/* Sends an answer, after everything that was gathered for its client. */
void pubsub_feed_reply(struct pubsub *pubsub, struct receiver *receiver,
                       const struct notice *notice);

/* Sends what was gathered, if it is due, and flushes the pushes. It stops at
 * until_ns; then the caller calls again before it gathers more. Returns when
 * the next call is due, by the monotonic clock; 0: nothing is gathered. */
uint64_t pubsub_feed_send(struct pubsub *pubsub, struct loop *loop,
                          uint64_t until_ns);
