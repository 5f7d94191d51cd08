/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An epoch is a generation of a slot. Counts of keys, which are wrong while
 * there are several epochs, are corrected at the end.
 */
#include "keyspace/arrival.h"

#include "core/ageing.h"
#include "core/parts.h"
#include "keyspace/keyspace_internal.h"
#include "keyspace/memory.h"

void
arrival_expect(struct keyspace *ks, uint64_t keys)
{
    uint64_t each = keys / KEYSPACE_STRIPES;

    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        table_expect(&ks->stripes[i].table,
                     each < UINT32_MAX ? (uint32_t)each : UINT32_MAX);
    }
}

void
arrival_set_epoch(struct keyspace *ks, uint32_t db, uint32_t epoch)
{
    uint32_t slot = db_slot_of(db_id_of(ks, db));
    uint32_t db_id = epoch << DB_SLOT_BITS | slot;

    CHECK(epoch < 1U << DB_SLOT_BITS);
    if (db_id_of(ks, db) != db_id) {
        atomic_store(&ks->db_ids[db], db_id);
        atomic_store(&ks->slot_ids[slot], db_id);
    }
}

/* Returns a key of the slot at this cursor; NULL: there is none. */
static struct entry *
slot_at(const struct table *table, uint32_t slot, uint64_t cursor,
        uint64_t *ret_next)
{
    struct table_range range = table_step(table, cursor, ret_next);
    struct entry *entry;

    do {
        entry = table_range_next(&range);
    } while (entry != NULL && db_slot_of(entry->db_id) != slot);
    return entry;
}

/* Removes all keys of a slot, of whatever epoch. */
static void
purge_slot(struct keyspace *ks, uint32_t slot)
{
    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        const struct table *table = &ks->stripes[i].table;
        uint64_t cursor = 0;
        uint64_t next = 1;

        while (table->count > 0 && next != 0) {
            struct entry *entry = slot_at(table, slot, cursor, &next);

            if (entry != NULL) {
                keyspace_remove_entry(ks, table_hash(entry), entry);
                next = 1; /* look at the same place again */
            } else {
                cursor = next;
            }
        }
    }
}

/* When there is no higher epoch, all keys of the slot are dead and are removed.
 * The epochs then begin again with 1, not with 0: this shows arrival_end that
 * the database was flushed. */
void
arrival_flush(struct keyspace *ks, uint32_t db)
{
    uint32_t epoch = (db_id_of(ks, db) >> DB_SLOT_BITS) + 1;

    if (epoch == 1U << DB_SLOT_BITS) {
        purge_slot(ks, db_slot_of(db_id_of(ks, db)));
        epoch = 1;
    }
    arrival_set_epoch(ks, db, epoch);
}

enum bloom_status
arrival_add(struct entry *entry, const struct bloom_env *env,
            const struct slice *items, size_t count, uint64_t now_ms)
{
    struct bloom *bloom = &entry->bloom;
    struct bloom_info before = { .struct_size = sizeof(before) };
    struct bloom_info after = { .struct_size = sizeof(after) };
    enum bloom_status status = BLOOM_OK;

    bloom_get_info(bloom, &before);
    for (size_t i = 0; i < count && status == BLOOM_OK; i++) {
        struct bloom_hash hash = bloom_hash(bloom, items[i].data, items[i].len);

        status = bloom_kind(bloom) == BLOOM_AGEING
                     ? ageing_force(bloom, env, hash, now_ms)
                     : bloom_force(bloom, env, hash);
    }
    bloom_get_info(bloom, &after);
    keyspace_account(&before, &after);
    return status;
}

void
arrival_forget_pieces(struct keyspace *ks)
{
    const struct bloom_env env = keyspace_env(NULL, 0); /* frees need no ctx */

    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        const struct table *table = &ks->stripes[i].table;

        for (uint32_t bucket = 0; bucket < table->used; bucket++) {
            struct table_range range = table_whole_bucket(table, bucket);
            struct entry *entry;

            while ((entry = table_range_next(&range)) != NULL) {
                bloom_set_pieces(&entry->bloom, NULL, &env);
            }
        }
    }
}

/* Counts a stripe's entries. False: one is of a later epoch than its slot. */
static bool
count_stripe(struct keyspace *ks, unsigned index)
{
    const struct table *table = &ks->stripes[index].table;

    for (uint32_t bucket = 0; bucket < table->used; bucket++) {
        struct table_range range = table_whole_bucket(table, bucket);
        const struct entry *entry;

        while ((entry = table_range_next(&range)) != NULL) {
            uint32_t slot = db_slot_of(entry->db_id);
            struct db_count *count = db_count_of(ks, index % ks->shards, slot);
            uint32_t live = atomic_load(&ks->slot_ids[slot]);

            if (entry->db_id > live) { /* same slot: a later epoch */
                return false;
            }
            if (entry->db_id < live) {
                atomic_fetch_add(&ks->dead, 1);
                continue;
            }
            atomic_fetch_add(&count->keys, 1);
            atomic_fetch_add(&count->expires, entry->heap_index != EXPIRE_NONE);
        }
    }
    return true;
}

static bool
count_all(struct keyspace *ks)
{
    bool good = true;

    for (size_t i = 0; i < (size_t)ks->shards * ks->databases; i++) {
        atomic_store(&ks->counts[i].keys, 0);
        atomic_store(&ks->counts[i].expires, 0);
    }
    atomic_store(&ks->dead, 0);
    for (unsigned i = 0; i < KEYSPACE_STRIPES && good; i++) {
        good = count_stripe(ks, i);
    }
    return good;
}

/* Counts every database as swapped, so that a watched key that exists counts as
 * changed, whatever version it has now. */
bool
arrival_end(struct keyspace *ks, uint64_t position, bool epochs)
{
    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        struct stripe *stripe = &ks->stripes[i];

        if (stripe->version < position) {
            stripe->version = position;
        }
        stripe->older_removals = ++stripe->version;
    }
    for (uint32_t db = 0; db < ks->databases; db++) {
        ks->swaps[db]++;
        epochs = epochs || db_id_of(ks, db) >> DB_SLOT_BITS > 0;
    }
    return !epochs || count_all(ks);
}
