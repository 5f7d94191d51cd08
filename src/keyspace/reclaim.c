/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Removes what nobody can see any more: keys whose time is over, and entries
 * of databases that were flushed. In slices: a stripe is locked for some tens
 * of microseconds. One thread at a time, inside a gate section.
 */
#include "base/clock.h"
#include "keyspace/keyspace_internal.h"

static bool
has_expired(const struct keyspace *ks, unsigned stripe, uint64_t now_ms)
{
    return atomic_load_explicit(&ks->next_expiry_ms[stripe],
                                memory_order_relaxed) <= now_ms;
}

static void
expire_slice(struct keyspace *ks, unsigned thread, unsigned index,
             uint64_t now_ms)
{
    struct stripe *stripe = &ks->stripes[index];

    walk_lock(ks, thread, index, true);
    for (int i = 0; i < LOCK_SLICE; i++) {
        struct entry *entry;

        if (expire_next(&stripe->expire) > now_ms) {
            break;
        }
        entry = stripe->expire.items[0].entry;
        if (db_is_live(ks, entry->db_id)) {
            metric_add(METRIC_EXPIRED_KEYS, 1);
        }
        keyspace_remove_entry(ks, index, table_hash(entry), entry);
    }
    table_fit(&stripe->table);
    walk_unlock(ks, thread, index);
}

/* One hold of the lock. Returns the cursor in the stripe, 0 at its end. */
static uint64_t
dead_slice(struct keyspace *ks, unsigned thread, unsigned index,
           uint64_t cursor)
{
    struct stripe *stripe = &ks->stripes[index];

    walk_lock(ks, thread, index, true);
    for (int i = 0; i < LOCK_SLICE; i++) {
        struct entry *entry;

        if (stripe->table.count == 0) {
            cursor = 0;
            break;
        }
        entry = table_bucket(&stripe->table, cursor);
        while (entry != NULL) {
            struct entry *next = entry->next;

            if (!db_is_live(ks, entry->db_id)) {
                keyspace_remove_entry(ks, index, table_hash(entry), entry);
            }
            entry = next;
        }
        cursor = table_next(&stripe->table, cursor);
        if (cursor == 0) {
            break;
        }
    }
    table_fit(&stripe->table);
    walk_unlock(ks, thread, index);
    return cursor;
}

static bool
has_dead(const struct keyspace *ks)
{
    return atomic_load_explicit(&ks->dead, memory_order_relaxed) > 0;
}

/* One step of a walk that begins again at the end as long as there is need:
 * entries may die behind it. */
static void
dead_step(struct keyspace *ks, unsigned thread)
{
    uint64_t bucket =
        ks->reclaim_cursor & (((uint64_t)1 << CURSOR_BUCKET_BITS) - 1);
    unsigned from = (unsigned)(ks->reclaim_cursor >> CURSOR_BUCKET_BITS);
    unsigned stripe = keyspace_next_occupied(ks, from);

    if (stripe == KEYSPACE_STRIPES) {
        ks->reclaim_cursor = 0;
        return;
    }
    bucket = dead_slice(ks, thread, stripe, stripe == from ? bucket : 0);
    if (bucket == 0) {
        stripe = (stripe + 1) % KEYSPACE_STRIPES;
    }
    ks->reclaim_cursor = (uint64_t)stripe << CURSOR_BUCKET_BITS | bucket;
}

bool
keyspace_reclaim(struct keyspace *ks, unsigned thread, uint64_t now_ms,
                 uint64_t budget_us)
{
    uint64_t end_ns = clock_mono_ns() + budget_us * 1000;

    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        unsigned stripe = ks->reclaim_stripe;

        while (has_expired(ks, stripe, now_ms)) {
            expire_slice(ks, thread, stripe, now_ms);
            if (clock_mono_ns() >= end_ns) {
                return true;
            }
        }
        ks->reclaim_stripe = (stripe + 1) % KEYSPACE_STRIPES;
    }
    while (has_dead(ks)) {
        dead_step(ks, thread);
        if (clock_mono_ns() >= end_ns) {
            return has_dead(ks);
        }
    }
    return false;
}

void
keyspace_purge_dead(struct keyspace *ks)
{
    for (unsigned stripe = keyspace_next_occupied(ks, 0);
         stripe < KEYSPACE_STRIPES;
         stripe = keyspace_next_occupied(ks, stripe + 1)) {
        struct table *table = &ks->stripes[stripe].table;

        for (size_t b = 0; b <= table->mask; b++) {
            struct entry *entry = table->buckets[b];

            while (entry != NULL) {
                struct entry *next = entry->next;

                if (!db_is_live(ks, entry->db_id)) {
                    keyspace_remove_entry(ks, stripe, table_hash(entry), entry);
                }
                entry = next;
            }
        }
        table_fit(table);
    }
}
