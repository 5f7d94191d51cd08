/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who has read which key and is to hear of its next change: once, then it is
 * forgotten, until it is read again. The table is sharded by the hash of the
 * name, each shard under a leaf lock. Any thread.
 *
 * It is bounded by a number of keys and by the bytes of all it holds: names,
 * and 8 to 16 for each reader of a key. Beyond that some keys, drawn at
 * random, are declared to have changed.
 *
 * A reader that has left stays in the sets of the keys that it read until they
 * change or readership_sweep comes by; nobody is told for it.
 */
#pragma once

#include "admin/notice.h"

#include <stddef.h>

struct readership;
struct reader;

/* Of the table; 0: none. */
struct readership_limits {
    const _Atomic uint64_t *keys, *bytes;
};

struct readership *readership_new(const struct readership_limits *limits);
void readership_free(struct readership *readership);

/* A client that begins to read; NULL without memory. One that comes again is
 * another reader. */
struct reader *readership_join(uint64_t id, unsigned loop);
void readership_leave(struct readership *readership, struct reader *reader);

/* How many keys it has read that are remembered, or that nobody has looked at
 * since. */
uint64_t readership_keys(const struct reader *reader);

/* That a key changed, on its way to those who are to know. */
struct tidings {
    uint64_t from; /* the client that did it; 0: nobody */
    struct slice name;
    struct notice_list *list;
    struct notice *notice; /* made for the first who is to know */
};

/* For one client of this loop, or all of them (to: 0). */
void readership_post(struct tidings *tidings, unsigned loop, uint64_t to);
void readership_end_tidings(struct tidings *tidings);

/* Remembers a read. What cannot be remembered has changed at once, as far as
 * this reader hears. */
void readership_add(struct readership *readership, struct reader *reader,
                    struct slice name, uint64_t hash, struct notice_list *list);

/* Posts to all readers of the name, and forgets it. */
void readership_tell(struct readership *readership, struct tidings *tidings,
                     uint64_t hash);

/* Forgets everything, without telling. Takes no time: readership_sweep frees
 * it. One shard after the other: nobody may add meanwhile who must not be
 * forgotten. */
void readership_forget(struct readership *readership);

/* Frees what was forgotten and who has left, for at most so many buckets; true
 * if there is more. From one thread. */
bool readership_sweep(struct readership *readership, size_t buckets);

struct readership_sums {
    uint64_t keys, items, bytes;
};
struct readership_sums readership_sum(struct readership *readership);
