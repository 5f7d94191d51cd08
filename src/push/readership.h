/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The readers of keys (CLIENT TRACKING in the default mode): which client has
 * read which key since it last changed. A change of the key invalidates it:
 * each reader gets one notice, and the key is forgotten until it is read again.
 * The table has shards by the hash of the name, each under a leaf lock. Any
 * thread.
 *
 * The table is bounded by a number of keys, and by the bytes of their names and
 * of their sets of readers (8 to 16 bytes a reader). Beyond that it evicts
 * random keys: their readers get an invalidation as if the keys had changed.
 *
 * A reader that has left stays in the sets of its keys until they change or
 * readership_sweep comes by. It gets no notices.
 */
#pragma once

#include "push/notice.h"

#include <stddef.h>

struct readership;
struct reader;

/* Limits of the table, which may change at any time; 0: none. */
struct readership_limits {
    const _Atomic uint64_t *keys, *bytes;
};

struct readership *readership_new(const struct readership_limits *limits);
void readership_free(struct readership *readership);

/* Makes a reader for a client; NULL: no memory. A client that leaves and joins
 * again is another reader. */
struct reader *readership_join(uint64_t id, unsigned loop);
void readership_leave(struct readership *readership, struct reader *reader);

/* Returns how many keys a reader has read that have not been invalidated or
 * swept since. */
uint64_t readership_keys(const struct reader *reader);

/* A change of a key, while it is posted to the clients that want to be told. */
struct invalidation {
    uint64_t from; /* the client that changed it; 0: none */
    struct slice name;
    struct notice_list *list;
    struct notice *notice; /* made with the first post */
};

/* Posts an invalidation to one client of a loop, or, if `to` is 0, to all
 * clients of the loop that follow a prefix. */
void invalidation_post(struct invalidation *invalidation, unsigned loop,
                       uint64_t to);
void invalidation_fini(struct invalidation *invalidation);

/* Remembers a read. If that is impossible, posts an invalidation to the reader
 * at once. */
void readership_add(struct readership *readership, struct reader *reader,
                    struct slice name, uint64_t hash, struct notice_list *list);

/* Posts the invalidation to all readers of the key, and forgets the key. */
void readership_invalidate(struct readership *readership,
                           struct invalidation *invalidation, uint64_t hash);

/* Forgets all keys without an invalidation. Fast: readership_sweep frees the
 * memory. It clears one shard after the other, so a key that another thread
 * adds meanwhile may be forgotten, too. */
void readership_clear(struct readership *readership);

/* Frees forgotten keys and readers that have left, in at most so many buckets.
 * Returns whether there is more. Call it from one thread only. */
bool readership_sweep(struct readership *readership, size_t buckets);

struct readership_sums {
    uint64_t keys, items, bytes; /* items: readers, summed over all keys */
};
struct readership_sums readership_sum(struct readership *readership);
