/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How handlers look up keys: with the effect and the events of a key that has
 * expired, the statistics of hits and misses, and the note that a key was used.
 * Under the locks that the command's row names.
 */
#pragma once

#include "engine/request.h"
#include "keyspace/access.h"

/* Opens a key for writing, as keyspace_open. An expired key is removed, with an
 * effect and events of its own. */
struct entry *keys_open(struct request *req, const struct key *key);

/* Looks a key up for reading, as keyspace_find. Counts a hit or a miss, and may
 * publish an event for a miss. Only keys_find counts as a use of the key. */
struct entry *keys_find(struct request *req, const struct key *key);
struct entry *keys_peek(struct request *req, const struct key *key);

/* Notes a use of the key for eviction, unless its client has said CLIENT
 * NO-TOUCH. */
static inline void
keys_use(const struct request *req, struct entry *entry)
{
    if (!req->session->no_touch) {
        access_note(keyspace_access(req->keyspace), entry);
    }
}

/* Publishes the event of a new key. */
void keys_made(struct request *req, const struct key *key);
