/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A key as a command names it, the stripe that it belongs to, and a stored key.
 */
#pragma once

#include "base/slice.h"
#include "core/bloom.h"
#include "keyspace/key_hash.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { KEYSPACE_STRIPES = 1024 };

struct entry;

struct key {
    struct slice name;
    uint64_t hash; /* key_hash(name) */
    uint32_t db;   /* the client's number */
    /* What keyspace_look_ahead found, NULL if the key is missing. It is valid
     * for this name and database as long as `seen` equals table.changes + 1; if
     * `seen` is 0, nothing was looked up. A table that grows moves slots, not
     * entries. Do not use it after the stripe's lock is released: FLUSHDB,
     * SWAPDB and an exchange of the keyspace do not change table.changes, but
     * they raise the gate, and so wait for all locks. */
    uint64_t seen;
    struct entry *entry;
};

static inline struct key
key_named(struct slice name, uint32_t db)
{
    return (struct key){ .name = name, .hash = key_hash(name), .db = db };
}

static inline unsigned
keyspace_stripe_of(uint64_t hash)
{
    return (unsigned)(hash >> 54);
}

/* Owned by the keyspace; a pointer to it or to its filter is valid until the
 * stripe's lock is released. With a name of 11 bytes it takes 112 bytes. */
struct entry {
    union {
        uint64_t incarnation;      /* tells two keys of one name apart */
        struct entry *next_reaped; /* while it is in the reaper's queue */
    };
    _Atomic uint64_t version; /* see keyspace_version */
    struct bloom bloom;
    uint32_t db_id;          /* the internal id: keyspace_internal.h */
    uint32_t heap_index;     /* in struct expire, or EXPIRE_NONE */
    _Atomic uint32_t access; /* last use and frequency: access.h */
    uint8_t short_len : 7;   /* of the name, or ENTRY_LONG */
    uint8_t again : 1;       /* the walk has to come back to it: walk.h */
    char text[];             /* the name, behind its length if that is long */
};

_Static_assert(offsetof(struct entry, text) <= 101, "an entry: see above");

enum { ENTRY_LONG = 127 };

static inline struct slice
entry_name(const struct entry *entry)
{
    uint32_t len = entry->short_len;

    if (__builtin_expect(len < ENTRY_LONG, 1)) {
        return (struct slice){ entry->text, len };
    }
    memcpy(&len, entry->text, sizeof(len));
    return (struct slice){ entry->text + sizeof(len), len };
}

/* Returns the bytes of an entry whose name has LEN bytes. */
static inline size_t
entry_bytes(size_t len)
{
    return offsetof(struct entry, text) + len +
           (len < ENTRY_LONG ? 0 : sizeof(uint32_t));
}

/* Stores the name in an entry that has entry_bytes(name.len) bytes. */
static inline void
entry_set_name(struct entry *entry, struct slice name)
{
    uint32_t len = (uint32_t)name.len;
    char *text = entry->text;

    entry->short_len = (len < ENTRY_LONG ? len : ENTRY_LONG) & ENTRY_LONG;
    if (len >= ENTRY_LONG) {
        memcpy(text, &len, sizeof(len));
        text += sizeof(len);
    }
    if (len > 0) {
        memcpy(text, name.data, len);
    }
}
