/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hash table of one stripe: chains of entries, about one entry a bucket. It
 * grows and shrinks by a bucket or two at a time, so that no call takes long,
 * whatever its size. It owns its buckets, which are in segments of one size
 * with a directory, and not the entries; it allocates nothing before the first
 * insert. The caller has the stripe's lock.
 *
 * A walk visits the buckets in the order of their reversed bits (Pieter
 * Noordhuis's scheme): a bucket has all hashes between two points of that
 * order, a cursor is such a point, and the walk has seen every entry before it,
 * however buckets were split and joined meanwhile.
 */
#pragma once

#include "base/linear.h"
#include "base/slice.h"
#include "keyspace/entry.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    TABLE_SEGMENT_BITS = 7,
    TABLE_SEGMENT = 1 << TABLE_SEGMENT_BITS, /* buckets: 1 KiB */
    TABLE_FIT_MAX = 128 /* buckets that one table_fit frees */
};

struct table {
    struct entry ***segments; /* NULL before the first insert */
    uint32_t used;            /* buckets */
    uint32_t count;           /* entries */
};

/* Returns the chain of bucket 0 to used - 1, for walks while nothing changes.
 */
static inline struct entry **
table_chain(const struct table *table, uint64_t bucket)
{
    return &table->segments[bucket >> TABLE_SEGMENT_BITS]
                           [bucket & (TABLE_SEGMENT - 1)];
}

/* Returns the chain for this hash, or at this cursor. The table must have
 * buckets. */
static inline struct entry **
table_bucket(const struct table *table, uint64_t hash)
{
    return table_chain(table, linear_bucket(table->used, hash));
}

static inline struct entry *
table_find(const struct table *table, uint64_t hash, struct slice name,
           uint32_t db_id)
{
    struct entry *entry;

    if (__builtin_expect(table->segments == NULL, 0)) {
        return NULL;
    }
    for (entry = *table_bucket(table, hash); entry != NULL;
         entry = entry->next) {
        if (entry->name_len == name.len && entry->db_id == db_id &&
            memcmp(entry->name, name.data, name.len) == 0) {
            return entry;
        }
    }
    return NULL;
}

/* Returns the hash of the entry's name. */
uint64_t table_hash(const struct entry *entry);

/* Adds an entry whose name has this hash. Returns false, with nothing changed,
 * if there is no memory for the first buckets. A table that cannot grow works
 * on with longer chains. */
bool table_insert(struct table *table, uint64_t hash, struct entry *entry);

/* Returns where the table keeps its pointer to ENTRY, which must be in it. */
struct entry **table_link(const struct table *table, uint64_t hash,
                          const struct entry *entry);

/* Removes the entry at this link; the link then points to the next entry of the
 * chain. Never shrinks the table, so that walks may remove. */
void table_remove(struct table *table, struct entry **link);

/* Frees buckets while more than half are certainly empty, at most TABLE_FIT_MAX
 * of them: two for each removed entry are enough. Returns true if there is more
 * to do. */
bool table_fit(struct table *table);

/* Returns the cursor of the next bucket, 0 after the last. */
uint64_t table_next(const struct table *table, uint64_t cursor);

/* Frees the buckets, not the entries. */
void table_fini(struct table *table);
