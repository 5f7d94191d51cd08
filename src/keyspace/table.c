/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Doubling moves all entries at once, under the lock of one stripe in 1024.
 * An entry does not keep its hash (8 bytes for each of millions): moving it
 * hashes its name again, which is cheap once its line is there, so entries are
 * fetched a few buckets ahead.
 */
#include "keyspace/table.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"

enum {
    BUCKETS_MIN = 4,
    SHRINK_BELOW = 8, /* entries x this < buckets: it pays */
    FETCH_AHEAD = 8   /* buckets */
};

static const size_t BUCKETS_MAX = (size_t)1 << 31;

uint64_t
table_hash(const struct entry *entry)
{
    return hash_name((struct slice){ entry->name, entry->name_len });
}

static void
push(struct entry **bucket, struct entry *entry)
{
    entry->next = *bucket;
    *bucket = entry;
}

static bool
resize(struct table *table, size_t size)
{
    struct entry **buckets = mem_try_zalloc(size * sizeof(struct entry *));
    size_t old = table->buckets != NULL ? (size_t)table->mask + 1 : 0;

    if (buckets == NULL) {
        return false;
    }
    for (size_t i = 0; i < old; i++) {
        struct entry *entry = table->buckets[i];

        if (i + FETCH_AHEAD < old) {
            __builtin_prefetch(table->buckets[i + FETCH_AHEAD]);
        }
        while (entry != NULL) {
            struct entry *next = entry->next;

            push(&buckets[table_hash(entry) & (size - 1)], entry);
            entry = next;
        }
    }
    mem_free(table->buckets);
    table->buckets = buckets;
    table->mask = (uint32_t)(size - 1);
    return true;
}

bool
table_insert(struct table *table, uint64_t hash, struct entry *entry)
{
    if (table->buckets == NULL) {
        if (!resize(table, BUCKETS_MIN)) {
            return false;
        }
    } else if (table->count > table->mask && table->mask < BUCKETS_MAX - 1) {
        (void)resize(table, ((size_t)table->mask + 1) * 2);
    }
    push(&table->buckets[hash & table->mask], entry);
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
    *link = (*link)->next;
    table->count--;
}

void
table_fit(struct table *table)
{
    size_t size = (size_t)table->mask + 1;

    if (table->buckets == NULL || size <= BUCKETS_MIN ||
        (size_t)table->count * SHRINK_BELOW >= size) {
        return;
    }
    while (size > BUCKETS_MIN && (size_t)table->count * 2 < size) {
        size /= 2;
    }
    (void)resize(table, size);
}

static uint64_t
reverse_bits(uint64_t v)
{
    v = ((v >> 1) & 0x5555555555555555U) | ((v & 0x5555555555555555U) << 1);
    v = ((v >> 2) & 0x3333333333333333U) | ((v & 0x3333333333333333U) << 2);
    v = ((v >> 4) & 0x0F0F0F0F0F0F0F0FU) | ((v & 0x0F0F0F0F0F0F0F0FU) << 4);
    return __builtin_bswap64(v);
}

/* Adds one to the bucket number read from its highest bit down. */
uint64_t
table_next(const struct table *table, uint64_t cursor)
{
    return reverse_bits(reverse_bits(cursor | ~(uint64_t)table->mask) + 1);
}

void
table_fini(struct table *table)
{
    mem_free(table->buckets);
    *table = (struct table){ NULL, 0, 0 };
}
