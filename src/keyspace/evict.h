/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Chooses the key to evict when memory is short: examines a few keys in random
 * stripes and picks the best. There are two steps, since the caller reserves
 * journal space for the eviction's effect in between:
 *
 *   evict_choose   locks stripes itself, shared, one at a time
 *   evict_find     under the candidate's stripe lock, exclusive; the candidate
 *                  may have been removed meanwhile
 *
 * Entries of a flushed database and expired keys are the best candidates under
 * every plan; evict_find itself removes an entry of a flushed database.
 */
#pragma once

#include "keyspace/keyspace.h"

enum evict_by { EVICT_OLDEST, EVICT_RAREST, EVICT_ANY, EVICT_SOONEST };

struct evict_plan {
    enum evict_by by;   /* EVICT_SOONEST: needs volatile_only, and is exact */
    bool volatile_only; /* keys that have a time to live */
    unsigned samples;
    uint64_t now_ms;
};

struct evict_candidate {
    const struct entry *entry; /* only to be compared */
    uint64_t incarnation, hash;
    unsigned stripe;
    size_t name_len;
    uint32_t db_id;
    uint32_t rank; /* the higher, the sooner evicted */
};

/* Returns false if there is no candidate. Call it inside a gate section, with
 * no stripe locked. */
bool evict_choose(struct keyspace *ks, unsigned thread,
                  const struct evict_plan *plan,
                  struct evict_candidate *ret_candidate);

/* Returns the entry and its key, borrowed until the lock is released, and
 * whether it has expired; NULL if the entry no longer exists. */
struct entry *evict_find(struct keyspace *ks, const struct evict_plan *plan,
                         const struct evict_candidate *candidate,
                         struct key *ret_key, bool *ret_expired);
