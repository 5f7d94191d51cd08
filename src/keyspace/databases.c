/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A flush of everything moves the tables out and leaves them to the reaper; a
 * flush of one database only gives its slot another generation.
 */
#include "keyspace/databases.h"

#include "base/metrics.h"
#include "keyspace/keyspace_internal.h"
#include "keyspace/reaper.h"
#include "keyspace/reclaim.h"

enum { GENERATIONS = 1 << DB_SLOT_BITS };

/* Notes that names vanished without a removal of each: a WATCH of a missing
 * name must notice. If the names can come back (SWAPDB), the version must be
 * one that no client has seen. */
static void
touch_removals(struct keyspace *ks, bool may_return)
{
    for (unsigned i = keyspace_next_occupied(ks, 0); i < KEYSPACE_STRIPES;
         i = keyspace_next_occupied(ks, i + 1)) {
        ks->stripes[i].version += may_return;
        ks->stripes[i].older_removals = ks->stripes[i].version;
    }
}

static void
clear_count(struct keyspace *ks, uint32_t slot)
{
    for (unsigned i = 0; i < ks->shards; i++) {
        atomic_store(&db_count_of(ks, i, slot)->keys, 0);
        atomic_store(&db_count_of(ks, i, slot)->expires, 0);
    }
}

uint64_t
keyspace_entries(const struct keyspace *ks)
{
    uint64_t entries = 0;

    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        entries += ks->stripes[i].table.count;
    }
    return entries;
}

void
keyspace_move_out(struct keyspace *ks, struct reaper_set *set)
{
    set->entries = keyspace_entries(ks);
    touch_removals(ks, false);
    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        struct stripe *stripe = &ks->stripes[i];

        set->tables[i] = stripe->table;
        set->expires[i] = stripe->expire;
        stripe->table = (struct table){ .changes = stripe->table.changes + 1 };
        stripe->expire = (struct expire){ NULL, 0, 0 };
        atomic_store_explicit(&ks->next_expiry_ms[i], UINT64_MAX,
                              memory_order_relaxed);
    }
    for (unsigned i = 0; i < OCCUPIED_WORDS; i++) {
        atomic_store_explicit(&ks->occupied[i], 0, memory_order_relaxed);
    }
    for (uint32_t slot = 0; slot < ks->databases; slot++) {
        clear_count(ks, slot);
    }
    atomic_store(&ks->dead, 0);
}

static void
empty(struct keyspace *ks)
{
    struct reaper_set *set;

    if (keyspace_entries(ks) == 0) {
        return;
    }
    set = reaper_take_set(ks->reaper);
    keyspace_move_out(ks, set);
    /* The memory of all filters, without those already given to the reaper. */
    set->bytes = metric_sum(METRIC_BF_MEMORY) -
                 metric_sum(METRIC_LAZYFREE_PENDING_BYTES);
    reaper_give_set(ks->reaper, set);
}

/* A flush of an empty database counts, too, since it is in the log (walk.h). */
void
keyspace_flush_all(struct keyspace *ks)
{
    for (uint32_t slot = 0; slot < ks->databases; slot++) {
        ks->epochs[slot]++;
    }
    empty(ks);
}

void
keyspace_flush_db(struct keyspace *ks, uint32_t db)
{
    uint32_t db_id = db_id_of(ks, db);
    uint32_t slot = db_slot_of(db_id);
    uint32_t generation = ((db_id >> DB_SLOT_BITS) + 1) % GENERATIONS;
    uint32_t next = generation << DB_SLOT_BITS | slot;
    uint64_t keys;
    uint64_t expires;

    ks->epochs[slot]++;
    keyspace_count(ks, db, &keys, &expires);
    if (keys == 0) {
        return;
    }
    if (keys == keyspace_entries(ks)) {
        empty(ks); /* no other keys: the reaper does it all */
        return;
    }
    touch_removals(ks, false);
    if (generation == 0) {
        keyspace_purge_dead(ks); /* some have the id that comes next */
    }
    clear_count(ks, slot);
    (void)atomic_fetch_add_explicit(&ks->dead, (int64_t)keys,
                                    memory_order_relaxed);
    atomic_store(&ks->db_ids[db], next);
    atomic_store(&ks->slot_ids[slot], next);
    if (generation == 0) {
        keyspace_purge_dead(ks); /* these would become live after a wrap */
    }
}

void
keyspace_swap_db(struct keyspace *ks, uint32_t a, uint32_t b)
{
    uint32_t db_id = db_id_of(ks, a);

    if (a == b) {
        return;
    }
    touch_removals(ks, true);
    ks->swaps[a]++;
    ks->swaps[b]++;
    atomic_store(&ks->db_ids[a], db_id_of(ks, b));
    atomic_store(&ks->db_ids[b], db_id);
    ks->slot_dbs[db_slot_of(db_id)] = b;
    ks->slot_dbs[db_slot_of(db_id_of(ks, a))] = a;
}
