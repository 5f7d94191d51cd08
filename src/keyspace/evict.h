/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which key is to go when memory is short: a few are looked at, in random
 * stripes, and the best of them is chosen. In two steps, since between them
 * the caller makes room for what it will say of it:
 *
 *   evict_choose   locks stripes by itself, shared, one at a time
 *   evict_find     under the candidate's stripe, exclusive: it may be gone
 *
 * Entries whose database was flushed, and keys whose time is over, are the best
 * candidates of all under every plan; evict_find removes the former by itself.
 */
#pragma once

#include "keyspace/keyspace.h"

enum evict_by { EVICT_OLDEST, EVICT_RAREST, EVICT_ANY, EVICT_SOONEST };

struct evict_plan {
    enum evict_by by;   /* EVICT_SOONEST: with volatile_only, and exact */
    bool volatile_only; /* keys that have a time to live */
    unsigned samples;
    uint64_t now_ms;
};

struct evict_candidate {
    const struct entry *entry; /* only to be compared */
    uint64_t incarnation, hash;
    unsigned stripe;
    uint32_t name_len;
    uint32_t rank; /* the higher, the sooner it goes */
};

/* False if there is none. No stripe held, inside a gate section. */
bool evict_choose(struct keyspace *ks, unsigned thread,
                  const struct evict_plan *plan,
                  struct evict_candidate *ret_candidate);

/* The entry and its key, borrowed until the lock is given back, and whether its
 * time is over; NULL if it is gone, or was removed just now. */
struct entry *evict_find(struct keyspace *ks, const struct evict_plan *plan,
                         const struct evict_candidate *candidate,
                         struct key *ret_key, bool *ret_expired);
