/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hash table of one stripe: chains of entries, hardly more than one entry a
 * bucket. It grows and shrinks by a bucket or two at a time, so that no call
 * takes long however much is in it. It owns the buckets, in segments of one
 * size with a directory, and not the entries; it has neither until the first
 * insert. The caller has the stripe's lock.
 *
 * A walk goes through buckets in the order of their reversed bits (Pieter
 * Noordhuis's scheme): a bucket is all hashes between two points of that order,
 * a cursor is such a point, and what lies before it has been met, however
 * buckets were split and joined meanwhile.
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
    TABLE_FIT_MAX = 128 /* buckets that go in one table_fit */
};

struct table {
    struct entry ***segments; /* NULL while nothing was ever inserted */
    uint32_t used;            /* buckets */
    uint32_t count;           /* entries */
};

/* The chain of bucket 0 to used - 1, for walks while nothing changes. */
static inline struct entry **
table_chain(const struct table *table, uint64_t bucket)
{
    return &table->segments[bucket >> TABLE_SEGMENT_BITS]
                           [bucket & (TABLE_SEGMENT - 1)];
}

/* The chain that has this hash, or that a cursor stands at; the table must have
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

/* The hash that its name has. */
uint64_t table_hash(const struct entry *entry);

/* False, and nothing changed, if there is no memory for the first buckets.
 * A table that cannot grow works on with longer chains. */
bool table_insert(struct table *table, uint64_t hash, struct entry *entry);

/* Where the table keeps its pointer to ENTRY, which must be in it. */
struct entry **table_link(const struct table *table, uint64_t hash,
                          const struct entry *entry);

/* Takes the entry at this link out. Never shrinks, so that walks may remove:
 * the link then holds the next entry of the chain. */
void table_remove(struct table *table, struct entry **link);

/* Gives up buckets while more than half must be empty, at most TABLE_FIT_MAX of
 * them: two for each entry that was removed are enough. True if there is more
 * to do. */
bool table_fit(struct table *table);

/* The cursor of the next bucket, 0 after the last. */
uint64_t table_next(const struct table *table, uint64_t cursor);

/* Frees the buckets; the entries are no longer the table's. */
void table_fini(struct table *table);
