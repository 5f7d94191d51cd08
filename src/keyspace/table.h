/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hash table of one stripe. A bucket is one block of a few cache lines with
 * eight slots each. A slot has the address of an entry and its place: 19 bits
 * of the hash of its name and database.
 *
 *   slot    | 44 bits: address / 16 | 1 bit: passed | 19 bits: place |
 *
 * The low bits of a place select the bucket, the high ones a line in it, and
 * the rest tells entries apart: to see that a name is missing, a lookup mostly
 * reads one line and no entry. An entry whose line is full is in one of the
 * next lines, and marks each line that it passed.
 *
 * The table grows and shrinks by one or two buckets at a time, and a bucket by
 * a few lines, so that no call takes long, whatever the table's size. Only a
 * load in the order of a walk fills some buckets first: when one of them is
 * full, an insert may split many others before that one. All of this moves
 * slots only: entries are neither read nor written. The table owns its buckets,
 * not the entries, and allocates nothing before the first insert. The caller
 * has the stripe's lock.
 *
 * A walk visits places in the order of their reversed bits (Pieter Noordhuis's
 * scheme): a cursor is a point in this order, and the walk has seen every entry
 * before it, however buckets were split and joined meanwhile.
 */
#pragma once

#include "base/err.h"
#include "base/linear.h"
#include "base/prefetch.h"
#include "base/slice.h"
#include "core/relocate.h"
#include "keyspace/entry.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TABLE_PLACE_BITS = 19,
    TABLE_SLOTS = 8,    /* slots of a line */
    TABLE_TARGET = 160, /* entries a bucket, on average, before the table grows;
                          one that is not split yet has about twice as many,
                          and during a load up to as many as its lines take */
    TABLE_LINES_MAX = 56
};

#define TABLE_PLACE   (((uint64_t)1 << TABLE_PLACE_BITS) - 1)
#define TABLE_PASSED  ((uint64_t)1 << TABLE_PLACE_BITS)
#define TABLE_ADDRESS (~(TABLE_PASSED | TABLE_PLACE)) /* in a slot */

/* A word of `buckets` is | 16 bits: number of entries | address of the lines |
 * 6 bits: number of lines |, and 0 without lines. */
struct table {
    uint64_t *buckets; /* NULL before the first insert */
    uint32_t used;     /* buckets */
    uint32_t count;    /* entries */
    uint64_t changes;  /* inserts and removals */
};

/* Returns the place of a name with this hash. The database takes part, so that
 * one name in many databases is at many places. */
static inline uint64_t
table_place(uint64_t hash, uint32_t db_id)
{
    return (hash ^ (db_id * UINT64_C(0x9E3779B97F4A7C15)) >> 40) & TABLE_PLACE;
}

/* ---- the parts of a bucket ----------------------------------------------- */

static inline uint64_t *
table_slots(uint64_t bucket, unsigned line)
{
    /* The word also has the number of lines.
     * NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return (uint64_t *)(uintptr_t)((bucket & UINT64_C(0x0000FFFFFFFFFFC0)) +
                                   (size_t)line * TABLE_SLOTS *
                                       sizeof(uint64_t));
}

static inline unsigned
table_line_count(uint64_t bucket)
{
    return (unsigned)(bucket & 63);
}

/* Returns the line that an entry with this place is in, unless that line was
 * full. */
static inline unsigned
table_home(uint64_t bucket, uint64_t place)
{
    return (unsigned)((place >> (TABLE_PLACE_BITS - 8)) * (bucket & 63) >> 8);
}

/* Returns the index of the slot whose bit `passed` says whether entries with
 * such places passed the line. */
static inline unsigned
table_passed(uint64_t place)
{
    return place >> 8 & (TABLE_SLOTS - 1);
}

/* Returns the entry of a slot, NULL if it is empty. */
static inline struct entry *
table_entry(uint64_t slot)
{
    /* The word also has a place.
     * NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return (struct entry *)(uintptr_t)((slot & TABLE_ADDRESS) >> 16);
}

/* Returns the bucket for this place. The table must have buckets. */
static inline uint64_t *
table_bucket(const struct table *table, uint64_t place)
{
    return &table->buckets[linear_bucket(table->used, place)];
}

/* ---- lookups ------------------------------------------------------------- */

static inline bool
table_is_named(const struct entry *entry, struct slice name, uint32_t db_id)
{
    struct slice own = entry_name(entry);

    return own.len == name.len && entry->db_id == db_id &&
           memcmp(own.data, name.data, name.len) == 0;
}

/* Returns the entry of this name in one line, or NULL. */
static inline struct entry *
table_find_in(const uint64_t *slots, uint64_t place, struct slice name,
              uint32_t db_id)
{
#pragma GCC unroll 8
    for (unsigned i = 0; i < TABLE_SLOTS; i++) {
        if (((slots[i] ^ place) & TABLE_PLACE) == 0) {
            struct entry *entry = table_entry(slots[i]);

            if (entry != NULL && table_is_named(entry, name, db_id)) {
                return entry;
            }
        }
    }
    return NULL;
}

static inline struct entry *
table_find(const struct table *table, uint64_t hash, struct slice name,
           uint32_t db_id)
{
    uint64_t place = table_place(hash, db_id);
    uint64_t bucket;
    unsigned at;

    if (__builtin_expect(table->buckets == NULL, 0)) {
        return NULL;
    }
    bucket = *table_bucket(table, place);
    at = table_home(bucket, place);
    for (unsigned left = table_line_count(bucket); left > 0; left--) {
        const uint64_t *slots = table_slots(bucket, at);
        struct entry *entry = table_find_in(slots, place, name, db_id);

        if (entry != NULL) {
            return entry;
        }
        if ((slots[table_passed(place)] & TABLE_PASSED) == 0) {
            return NULL;
        }
        at = at + 1 < table_line_count(bucket) ? at + 1 : 0;
    }
    return NULL;
}

/* Prefetch for a lookup in two stages: the line of a name, then the entries
 * that the name may have. */
static inline void
table_prefetch_line(const struct table *table, uint64_t place)
{
    if (table->buckets != NULL) {
        uint64_t bucket = *table_bucket(table, place);

        prefetch(table_slots(bucket, table_home(bucket, place)));
    }
}

static inline void
table_prefetch_entry(const struct table *table, uint64_t place)
{
    uint64_t bucket = table->buckets != NULL ? *table_bucket(table, place) : 0;
    const uint64_t *slots = table_slots(bucket, table_home(bucket, place));

    for (unsigned i = 0; bucket != 0 && i < TABLE_SLOTS; i++) {
        if (((slots[i] ^ place) & TABLE_PLACE) == 0) {
            const char *entry = (const char *)table_entry(slots[i]);

            prefetch(entry);
            prefetch(entry + 64);
        }
    }
}

/* Returns ENTRY, or NULL if it is not in the table. ENTRY may be freed already:
 * it is only compared. */
struct entry *table_get(const struct table *table, uint64_t place,
                        const struct entry *entry);

/* Returns the hash of the entry's name. */
uint64_t table_hash(const struct entry *entry);

/* ---- changes: they invalidate ranges (below) ----------------------------- */

/* Adds an entry, whose address is a multiple of 16, as the allocator's are.
 * Returns false, and adds nothing, if the entry's bucket is full and there is
 * no memory for a larger one or for splits, or the table has the most buckets
 * that it may have. A table without memory to grow fills its buckets instead.
 */
MUST_CHECK bool table_insert(struct table *table, uint64_t place,
                             struct entry *entry);

/* Makes buckets for about so many entries, as far as there is memory. The table
 * is new. */
void table_expect(struct table *table, uint32_t count);

/* Removes an entry, which must be in the table. */
void table_remove(struct table *table, uint64_t place,
                  const struct entry *entry);

/* Replaces the address of an entry that was moved. FROM is only compared.
 * Ranges stay valid. */
void table_replace(struct table *table, uint64_t place,
                   const struct entry *from, struct entry *to);

/* Lets MOVE move the lines of the bucket that this cursor is in
 * (core/relocate.h). */
void table_relocate(struct table *table, uint64_t cursor, relocate_fn move,
                    struct relocate_sums *sums);

/* Frees the buckets, not the entries. */
void table_fini(struct table *table);

/* ---- walks --------------------------------------------------------------- */

/* Some entries of one bucket. */
struct table_range {
    const uint64_t *slot, *end;
    uint64_t place, mask; /* its entries have the bits `mask` of `place` */
};

/* Returns the entries at this cursor, about eight, and the cursor behind them,
 * 0 after the last. A cursor may have any value. */
struct table_range table_step(const struct table *table, uint64_t cursor,
                              uint64_t *ret_next);

/* Returns all entries of one bucket, which is below `used`. */
struct table_range table_whole_bucket(const struct table *table,
                                      uint32_t bucket);

/* Returns the next entry of the range, NULL at its end. */
static inline struct entry *
table_range_next(struct table_range *range)
{
    while (range->slot < range->end) {
        uint64_t slot = *range->slot++;

        if (table_entry(slot) != NULL &&
            ((slot ^ range->place) & range->mask) == 0) {
            return table_entry(slot);
        }
    }
    return NULL;
}

/* Prefetches the entry that is so many slots ahead. */
static inline void
table_range_prefetch(const struct table_range *range, unsigned ahead)
{
    if (range->end - range->slot > (ptrdiff_t)ahead) {
        prefetch(table_entry(range->slot[ahead]));
    }
}
