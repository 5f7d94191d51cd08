/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The capacity of the directory, and of the first segment while it is the only
 * one, is the power of two that follows from `used`, so it is not stored. A
 * table that grows at such a point, shrinks and grows again has gained or lost
 * half of its entries in between, so reallocations are rare.
 *
 * An entry does not store its hash, to save 8 bytes; splitting its bucket
 * hashes its name again.
 */
#include "keyspace/table.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"

enum {
    BUCKETS_MIN = 4,
    SPLITS = 2 /* at most in an insert; more than one after memory was short */
};

static const uint32_t BUCKETS_MAX = (uint32_t)1 << 31;

uint64_t
table_hash(const struct entry *entry)
{
    return hash_name((struct slice){ entry->name, entry->name_len });
}

/* ---- memory of buckets --------------------------------------------------- */

static bool
is_power_of_two(uint32_t number)
{
    return (number & (number - 1)) == 0;
}

static bool
resize_directory(struct table *table, size_t segments)
{
    struct entry ***moved = mem_try_realloc(
        (void *)table->segments, segments * sizeof(*table->segments));

    if (moved == NULL) {
        return false;
    }
    table->segments = moved;
    return true;
}

static bool
resize_first(struct table *table, size_t buckets)
{
    struct entry **moved = mem_try_realloc((void *)table->segments[0],
                                           buckets * sizeof(struct entry *));

    if (moved == NULL) {
        return false;
    }
    table->segments[0] = moved;
    return true;
}

static bool
begin(struct table *table)
{
    if (!resize_directory(table, 1)) {
        return false;
    }
    table->segments[0] = mem_try_zalloc(BUCKETS_MIN * sizeof(struct entry *));
    if (table->segments[0] == NULL) {
        mem_free((void *)table->segments);
        table->segments = NULL;
        return false;
    }
    table->used = BUCKETS_MIN;
    return true;
}

/* Allocates bucket `used`, uninitialised. */
static bool
grow(struct table *table)
{
    uint32_t segments = table->used / TABLE_SEGMENT;
    struct entry **segment;

    if (segments == 0) {
        return !is_power_of_two(table->used) ||
               resize_first(table, (size_t)table->used * 2);
    }
    if (table->used % TABLE_SEGMENT != 0) {
        return true;
    }
    if (is_power_of_two(segments) &&
        !resize_directory(table, (size_t)segments * 2)) {
        return false;
    }
    segment = mem_try_alloc(TABLE_SEGMENT * sizeof(struct entry *));
    if (segment == NULL) {
        return false;
    }
    table->segments[segments] = segment;
    return true;
}

/* Frees the memory behind the last bucket. A realloc that fails is ignored. */
static void
shrink(struct table *table)
{
    uint32_t segments = table->used / TABLE_SEGMENT;

    if (segments == 0) {
        if (is_power_of_two(table->used)) {
            (void)resize_first(table, table->used);
        }
    } else if (table->used % TABLE_SEGMENT == 0) {
        mem_free((void *)table->segments[segments]);
        if (is_power_of_two(segments)) {
            (void)resize_directory(table, segments);
        }
    }
}

/* ---- one bucket more or less --------------------------------------------- */

static bool
split(struct table *table)
{
    uint64_t bit = linear_bit(table->used);
    struct entry **stay;
    struct entry **leave;

    if (!grow(table)) {
        return false;
    }
    stay = table_chain(table, linear_parent(table->used));
    leave = table_chain(table, table->used);
    while (*stay != NULL) {
        struct entry *entry = *stay;

        if ((table_hash(entry) & bit) != 0) {
            *stay = entry->next;
            *leave = entry;
            leave = &entry->next;
        } else {
            stay = &entry->next;
        }
    }
    *leave = NULL;
    table->used++;
    return true;
}

static void
join(struct table *table)
{
    uint32_t last = table->used - 1;
    struct entry *chain = *table_chain(table, last);
    struct entry **to = table_chain(table, linear_parent(last));
    struct entry **end = &chain;

    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = *to;
    *to = chain;
    table->used = last;
    shrink(table);
}

/* ---- the calls ----------------------------------------------------------- */

bool
table_insert(struct table *table, uint64_t hash, struct entry *entry)
{
    struct entry **bucket;

    if (table->segments == NULL && !begin(table)) {
        return false;
    }
    for (int i = 0; i < SPLITS && table->count >= table->used &&
                    table->used < BUCKETS_MAX && split(table);
         i++) {
    }
    bucket = table_bucket(table, hash);
    entry->next = *bucket;
    *bucket = entry;
    table->count++;
    return true;
}

struct entry **
table_link(const struct table *table, uint64_t hash, const struct entry *entry)
{
    struct entry **link = table_bucket(table, hash);

    while (*link != entry) {
        CHECK(*link != NULL);
        link = &(*link)->next;
    }
    return link;
}

void
table_remove(struct table *table, struct entry **link)
{
    CHECK(*link != NULL && table->count > 0);
    *link = (*link)->next;
    table->count--;
}

static bool
is_mostly_empty(const struct table *table)
{
    return table->used > BUCKETS_MIN && table->used / 2 > table->count;
}

bool
table_fit(struct table *table)
{
    for (int i = 0; i < TABLE_FIT_MAX && is_mostly_empty(table); i++) {
        join(table);
    }
    return is_mostly_empty(table);
}

/* Adds one to the bucket number with its bits reversed, which is the point
 * where this bucket ends. */
uint64_t
table_next(const struct table *table, uint64_t cursor)
{
    return linear_next(table->used, cursor);
}

void
table_fini(struct table *table)
{
    for (uint32_t first = 0; first < table->used; first += TABLE_SEGMENT) {
        mem_free((void *)table->segments[first / TABLE_SEGMENT]);
    }
    mem_free((void *)table->segments);
    *table = (struct table){ NULL, 0, 0 };
}
