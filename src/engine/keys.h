/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How handlers look up keys: with the effect and the events of a key that has
 * expired, the statistics of hits and misses, and the note that a key was used.
 * Under the locks that the command's row names.
 */
#pragma once

#include "engine/request.h"
#include "keyspace/access.h"

/* Opens a key for writing: as keyspace_open, and if its time was over, its
 * removal becomes an effect of its own, and who listens hears of it. */
struct entry *keys_open(struct request *req, const struct key *key);

/* Looks a key up for reading, as keyspace_find; the lookup counts as a hit or
 * a miss, a miss may be told as an event, and keys_find counts as a use of
 * the key. */
struct entry *keys_find(struct request *req, const struct key *key);
struct entry *keys_peek(struct request *req, const struct key *key);

/* The key at hand was used, for eviction by age: if its client wants that to
 * count (CLIENT NO-TOUCH). */
static inline void
keys_use(const struct request *req, struct entry *entry)
{
    if (!req->session->no_touch) {
        access_note(keyspace_access(req->keyspace), entry);
    }
}

/* A key that was missing exists now: who wants events of that hears of it. */
void keys_made(struct request *req, const struct key *key);
