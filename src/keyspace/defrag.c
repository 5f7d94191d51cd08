/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Only the table and the heap of expiries have addresses of entries. Candidates
 * of eviction do too, but evict_find() looks in the table before it uses one.
 */
#include "keyspace/defrag.h"

#include "base/clock.h"
#include "keyspace/keyspace_internal.h"
#include "keyspace/scan.h"

enum {
    ENTRY_ALIGN = 16,
    LAYERS = 64 /* of one filter in one turn; the next turn takes others */
};

static void
replace(struct stripe *stripe, const struct entry *from, struct entry *to)
{
    table_replace(&stripe->table, table_place(table_hash(to), to->db_id), from,
                  to);
    if (to->heap_index != EXPIRE_NONE) {
        stripe->expire.items[to->heap_index].entry = to;
    }
}

static void
add_sums(struct relocate_sums *sums, const struct relocate_sums *more)
{
    sums->moved += more->moved;
    sums->stayed += more->stayed;
}

static void
relocate(struct keyspace *ks, struct stripe *stripe, struct entry *entry,
         relocate_fn move, struct defrag_sums *sums)
{
    struct relocate_sums key = { 0, 0 };
    void *block = entry;

    bloom_relocate(&entry->bloom, ks->defrag_turns * LAYERS, LAYERS, move,
                   &key);
    add_sums(&sums->filters, &key);
    relocate_block(&block, ENTRY_ALIGN, move, &key);
    if (block != entry) {
        replace(stripe, entry, block);
    }
    add_sums(&sums->all, &key);
    sums->keys.moved += key.moved > 0;
    sums->keys.stayed += key.moved == 0;
}

/* Moves some entries of a stripe under its lock. Returns the next cursor, 0 at
 * the end of the stripe. */
static uint64_t
step(struct keyspace *ks, unsigned thread, unsigned index, uint64_t cursor,
     relocate_fn move, struct defrag_sums *sums)
{
    struct stripe *stripe = &ks->stripes[index];
    struct longest_span locked = scan_lock(ks, thread, index, true);
    uint64_t next = 0;

    if (stripe->table.count > 0) {
        struct table_range range;
        struct entry *entry;

        table_relocate(&stripe->table, cursor, move, &sums->all);
        range = table_step(&stripe->table, cursor, &next);
        while ((entry = table_range_next(&range)) != NULL) {
            relocate(ks, stripe, entry, move, sums);
        }
    }
    scan_unlock(ks, thread, index, &locked);
    return next;
}

bool
keyspace_defrag(struct keyspace *ks, unsigned thread, relocate_fn move,
                uint64_t budget_us, struct defrag_sums *sums)
{
    uint64_t end_ns = clock_mono_ns() + budget_us * 1000;

    do {
        unsigned stripe = keyspace_next_occupied(ks, ks->defrag_stripe);

        if (stripe != ks->defrag_stripe) {
            ks->defrag_stripe = stripe;
            ks->defrag_cursor = 0;
        }
        if (stripe == KEYSPACE_STRIPES) {
            ks->defrag_stripe = 0;
            ks->defrag_turns++;
            return true;
        }
        ks->defrag_cursor =
            step(ks, thread, stripe, ks->defrag_cursor, move, sums);
        ks->defrag_stripe += ks->defrag_cursor == 0;
    } while (clock_mono_ns() < end_ns);
    return false;
}
