/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A key as a command names it, the stripe that it belongs to, and a stored key.
 */
#pragma once

#include "base/slice.h"
#include "core/bloom.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { KEYSPACE_STRIPES = 1024 };

struct key {
    struct slice name;
    uint64_t hash; /* hash_name(name) */
    uint32_t db;   /* the client's number */
};

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

_Static_assert(offsetof(struct entry, name) <= 112, "an entry: two lines");
