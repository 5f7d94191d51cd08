/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The entries of one stripe that have a time to live, in a binary heap with
 * the earliest on top. An entry stores its index in the heap, so that a change
 * or a removal needs no search. The heap owns its array, not the entries. The
 * caller has the stripe's lock.
 */
#pragma once

#include "keyspace/entry.h"

#include <stdbool.h>
#include <stdint.h>

/* The heap_index of an entry without a time to live. */
#define EXPIRE_NONE UINT32_MAX

/* Hooks of keyspace_reclaim. They learn which expired keys it removes, and may
 * delay a removal. They run on the thread that calls it; each may be NULL. */
struct keyspace_expiry {
    /* Called before a stripe is locked for some removals. False: no removals
     * now. */
    bool (*begin)(void *ctx, unsigned thread);
    /* Called before each removal, under the lock. False: neither this key nor
     * another one is removed before the next begin. */
    bool (*remove)(void *ctx, unsigned thread, const struct key *key);
    /* Called after the removals that follow a begin, still under the lock. */
    void (*end)(void *ctx, unsigned thread, unsigned stripe);
    void *ctx;
};

struct expire_item {
    uint64_t at_ms;
    struct entry *entry;
};

struct expire {
    struct expire_item *items;
    uint32_t count, capacity;
};

/* Adds ENTRY with this time, or moves it if the heap has it already. Returns
 * false, with nothing changed, if there is no memory to add an entry; a move
 * never fails. */
bool expire_set(struct expire *expire, struct entry *entry, uint64_t at_ms);

/* Removes ENTRY, which the heap must have. */
void expire_remove(struct expire *expire, struct entry *entry);

/* Returns the earliest time, UINT64_MAX if the heap is empty. */
static inline uint64_t
expire_next(const struct expire *expire)
{
    return expire->count > 0 ? expire->items[0].at_ms : UINT64_MAX;
}

/* Frees the array. The entries' heap_index is stale afterwards. */
void expire_fini(struct expire *expire);
