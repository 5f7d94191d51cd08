/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The entries of one stripe that have a time to live, in a binary heap with
 * the earliest on top. Each entry knows its place (heap_index), so that a
 * change or a removal needs no search. It owns its array, not the entries.
 * The caller has the stripe's lock.
 */
#pragma once

#include "keyspace/keyspace.h"

#include <stdbool.h>
#include <stdint.h>

/* heap_index of an entry that has no time to live. */
#define EXPIRE_NONE UINT32_MAX

struct expire_item {
    uint64_t at_ms;
    struct entry *entry;
};

struct expire {
    struct expire_item *items;
    uint32_t count, capacity;
};

/* Puts ENTRY in at this time, or moves it there if it is in. False, and
 * nothing changed, without memory; an entry that is in always succeeds. */
bool expire_set(struct expire *expire, struct entry *entry, uint64_t at_ms);

/* ENTRY must be in. */
void expire_remove(struct expire *expire, struct entry *entry);

/* The earliest time, UINT64_MAX if empty. */
static inline uint64_t
expire_next(const struct expire *expire)
{
    return expire->count > 0 ? expire->items[0].at_ms : UINT64_MAX;
}

/* Frees the array; entries keep a stale heap_index. */
void expire_fini(struct expire *expire);
