/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dead entries are found by a walk over all stripes, expired ones through the
 * first expiry of each stripe.
 */
#include "keyspace/reclaim.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "keyspace/keyspace_internal.h"
#include "keyspace/scan.h"

static bool
has_expired(const struct keyspace *ks, unsigned stripe, uint64_t now_ms)
{
    return atomic_load_explicit(&ks->next_expiry_ms[stripe],
                                memory_order_relaxed) <= now_ms;
}

/* Removes one expired entry; false if a hook wants it to stay. */
static bool
expire_entry(struct keyspace *ks, unsigned thread, struct entry *entry)
{
    const struct keyspace_expiry *expiry = &ks->expiry;
    uint64_t hash = table_hash(entry);

    if (db_is_live(ks, entry->db_id)) {
        struct key key = keyspace_key_of(ks, entry, hash);

        if (expiry->remove != NULL &&
            !expiry->remove(expiry->ctx, thread, &key)) {
            return false;
        }
        metric_add(METRIC_EXPIRED_KEYS, 1);
    }
    keyspace_remove_entry(ks, hash, entry);
    return true;
}

/* Removes one slice of expired entries under the lock. False if a hook allows
 * none now. */
static bool
expire_slice(struct keyspace *ks, unsigned thread, unsigned index,
             uint64_t now_ms)
{
    const struct keyspace_expiry *expiry = &ks->expiry;
    struct stripe *stripe = &ks->stripes[index];
    struct longest_span locked;

    if (expiry->begin != NULL && !expiry->begin(expiry->ctx, thread)) {
        return false;
    }
    locked = scan_lock(ks, thread, index, true);
    for (int i = 0; i < SCAN_SLICE; i++) {
        if (expire_next(&stripe->expire) > now_ms ||
            !expire_entry(ks, thread, stripe->expire.items[0].entry)) {
            break;
        }
    }
    if (expiry->end != NULL) {
        expiry->end(expiry->ctx, thread, index);
    }
    scan_unlock(ks, thread, index, &locked);
    return true;
}

/* Returns a dead entry at this cursor, or NULL. */
static struct entry *
dead_at(const struct keyspace *ks, const struct table *table, uint64_t cursor,
        uint64_t *ret_next)
{
    struct table_range range = table_step(table, cursor, ret_next);
    struct entry *entry;

    do {
        entry = table_range_next(&range);
    } while (entry != NULL && db_is_live(ks, entry->db_id));
    return entry;
}

/* Removes dead entries and steps over other places, at most `max` times
 * together. Returns false when it has removed all from the cursor on. After a
 * removal it looks at the same place again. */
static bool
remove_dead(struct keyspace *ks, struct table *table, uint64_t *cursor,
            uint64_t max)
{
    for (uint64_t i = 0; table->count > 0 && i < max; i++) {
        uint64_t next;
        struct entry *dead = dead_at(ks, table, *cursor, &next);

        if (dead != NULL) {
            keyspace_remove_entry(ks, table_hash(dead), dead);
            continue;
        }
        *cursor = next;
        if (next == 0) {
            return false;
        }
    }
    return table->count > 0;
}

/* Removes one slice of dead entries under the lock. False at the end of the
 * stripe. */
static bool
dead_slice(struct keyspace *ks, unsigned thread, unsigned index,
           uint64_t *cursor)
{
    struct longest_span locked;
    bool more;

    locked = scan_lock(ks, thread, index, true);
    more = remove_dead(ks, &ks->stripes[index].table, cursor, SCAN_SLICE);
    scan_unlock(ks, thread, index, &locked);
    return more;
}

static bool
has_dead(const struct keyspace *ks)
{
    return atomic_load_explicit(&ks->dead, memory_order_relaxed) > 0;
}

/* Makes one step of a walk over all stripes, which is repeated while dead
 * entries remain: one may have died at a place that the walk has passed. */
static void
dead_step(struct keyspace *ks, unsigned thread)
{
    unsigned stripe = keyspace_next_occupied(ks, ks->dead_stripe);

    if (stripe != ks->dead_stripe) {
        ks->dead_stripe = stripe % KEYSPACE_STRIPES;
        ks->dead_cursor = 0;
    } else if (!dead_slice(ks, thread, stripe, &ks->dead_cursor)) {
        ks->dead_stripe = (stripe + 1) % KEYSPACE_STRIPES;
        ks->dead_cursor = 0;
    }
}

/* Returns true if the budget ended before all were removed. */
static bool
reclaim_dead(struct keyspace *ks, unsigned thread, uint64_t end_ns)
{
    while (has_dead(ks)) {
        dead_step(ks, thread);
        if (clock_mono_ns() >= end_ns) {
            return true;
        }
    }
    return false;
}

bool
keyspace_reclaim_dead(struct keyspace *ks, unsigned thread, uint64_t budget_us)
{
    return reclaim_dead(ks, thread, clock_mono_ns() + budget_us * 1000);
}

bool
keyspace_reclaim(struct keyspace *ks, unsigned thread, uint64_t now_ms,
                 uint64_t budget_us)
{
    uint64_t end_ns = clock_mono_ns() + budget_us * 1000;

    access_tick(&ks->access, now_ms);
    if (reclaim_dead(ks, thread, end_ns)) {
        return true;
    }
    if (atomic_load(&ks->keeps_expired)) {
        return false;
    }
    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        unsigned stripe = ks->expire_stripe;

        while (has_expired(ks, stripe, now_ms)) {
            if (!expire_slice(ks, thread, stripe, now_ms)) {
                return false;
            }
            if (clock_mono_ns() >= end_ns) {
                return true;
            }
        }
        ks->expire_stripe = (stripe + 1) % KEYSPACE_STRIPES;
    }
    return false;
}

void
keyspace_keep_expired(struct keyspace *ks, bool on)
{
    atomic_store(&ks->keeps_expired, on);
}

void
keyspace_purge_dead(struct keyspace *ks)
{
    for (unsigned stripe = keyspace_next_occupied(ks, 0);
         stripe < KEYSPACE_STRIPES;
         stripe = keyspace_next_occupied(ks, stripe + 1)) {
        uint64_t cursor = 0;

        (void)remove_dead(ks, &ks->stripes[stripe].table, &cursor, UINT64_MAX);
    }
}
