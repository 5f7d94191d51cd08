/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looks up keys for handlers: counts hits and misses, notes uses of keys, and
 * writes the effect and the events of an expired key that is opened. Under the
 * locks that the command's row names.
 */
#pragma once

#include "engine/request.h"
#include "keyspace/access.h"

/* Opens a key for writing, as keyspace_open does, and counts a use of it. An
 * expired key is removed, which has an effect and events of its own. */
struct entry *keys_open(struct request *req, const struct key *key);

/* Look a key up for reading, as keyspace_find does. Both count a hit or a miss,
 * and may publish an event for a miss. Only keys_find counts a use of the key,
 * keys_peek does not. */
struct entry *keys_find(struct request *req, const struct key *key);
struct entry *keys_peek(struct request *req, const struct key *key);

/* Calls visit with each key of a command of many names, from argv position
 * `first` to its end, in order. The keys are looked up ahead in groups
 * (keyspace/ahead.h). */
typedef void (*keys_visit_fn)(struct request *req, const struct key *key,
                              void *ctx);
void keys_each(struct request *req, size_t first, keys_visit_fn visit,
               void *ctx);

/* Notes a use of the key for eviction, unless its client has said CLIENT
 * NO-TOUCH. */
static inline void
keys_use(const struct request *req, struct entry *entry)
{
    if (!req->session->no_touch) {
        access_note(keyspace_access(req->keyspace), entry);
    }
}

/* Lets a save that is under way copy a filter once more (keyspace/walk.h). Call
 * it after a command moved the filter here or changed it as a whole. */
void keys_walk_again(const struct request *req, const struct key *key);

/* Publishes the event of a new key, and tells the filter's subscribers. */
void keys_made(struct request *req, const struct key *key);
