/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hash table of one stripe: chains of entries, a power of two of buckets,
 * about one entry a bucket; none at all until the first insert. It owns the
 * bucket array, not the entries. The caller has the stripe's lock.
 *
 * A walk goes through buckets in the order of their reversed bits, so that it
 * survives doubling and halving between its steps: what was split lies behind
 * it or in front of it as a whole (Pieter Noordhuis's scheme).
 */
#pragma once

#include "base/slice.h"
#include "keyspace/keyspace.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct table {
    struct entry **buckets; /* NULL while nothing was ever inserted */
    uint32_t mask;          /* buckets - 1 */
    uint32_t count;         /* entries */
};

static inline struct entry *
table_find(const struct table *table, uint64_t hash, struct slice name,
           uint32_t db_id)
{
    struct entry *entry;

    if (__builtin_expect(table->buckets == NULL, 0)) {
        return NULL;
    }
    for (entry = table->buckets[hash & table->mask]; entry != NULL;
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
 * A table that cannot double keeps its size and works on. */
bool table_insert(struct table *table, uint64_t hash, struct entry *entry);

/* Where the table keeps its pointer to ENTRY, which must be in it. */
struct entry **table_link(const struct table *table, uint64_t hash,
                          const struct entry *entry);

/* Takes the entry at this link out. Never shrinks, so that walks may remove:
 * the link then holds the next entry of the chain. */
void table_remove(struct table *table, struct entry **link);

/* Shrinks the table if most of it is empty and there is memory for it. */
void table_fit(struct table *table);

/* The chain a cursor stands at; the table must have buckets. */
static inline struct entry **
table_bucket(const struct table *table, uint64_t cursor)
{
    return &table->buckets[cursor & table->mask];
}

/* The cursor of the next bucket, 0 after the last. */
uint64_t table_next(const struct table *table, uint64_t cursor);

/* Frees the bucket array; the entries are no longer the table's. */
void table_fini(struct table *table);
