/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A key as a command names it, the stripe that it belongs to, and a stored key.
 */
#pragma once

#include "base/hash.h"
#include "base/slice.h"
#include "core/bloom.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { KEYSPACE_STRIPES = 1024 };

struct entry;

struct key {
    struct slice name;
    uint64_t hash; /* hash_name(name) */
    uint32_t db;   /* the client's number */
    /* What keyspace_look_ahead found, NULL if the key is missing. It holds for
     * this name and database as long as table.changes + 1 is `seen`; 0: it has
     * not looked. Entries never move: a table that grows moves their places.
     * It ends with the stripe's lock: FLUSHDB, SWAPDB and an exchange of the
     * keyspace change no count, but raise the gate, and wait for all locks. */
    uint64_t seen;
    struct entry *entry;
};

static inline struct key
key_named(struct slice name, uint32_t db)
{
    return (struct key){ .name = name, .hash = hash_name(name), .db = db };
}

static inline unsigned
keyspace_stripe_of(uint64_t hash)
{
    return (unsigned)(hash >> 54);
}

/* Owned by the keyspace; a pointer to it or to its filter is valid until the
 * stripe's lock is released. With a name of up to 16 bytes it takes 128 bytes,
 * two cache lines. */
struct entry {
    struct entry *next;       /* in its bucket */
    uint64_t incarnation;     /* tells two keys of one name apart */
    _Atomic uint64_t version; /* see keyspace_version */
    uint32_t db_id;           /* internal: keyspace_internal.h */
    uint32_t heap_index;      /* in struct expire, or EXPIRE_NONE */
    uint32_t name_len;
    _Atomic uint32_t access; /* last use and frequency: access.h */
    struct bloom bloom;
    char name[];
};

static inline struct slice
entry_name(const struct entry *entry)
{
    return (struct slice){ entry->name, entry->name_len };
}

_Static_assert(offsetof(struct entry, name) <= 112, "an entry: two lines");
