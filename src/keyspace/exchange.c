/* SPDX-License-Identifier: BSD-3-Clause
 *
 * No key is read. Everything that describes the data is exchanged: tables and
 * heaps, the first expiries and the map of occupied stripes, counts, the
 * databases' numbers, how far the reclaimer is, and the clock of last uses.
 * Everything that describes the keyspace stays: threads, hooks, settings,
 * positions.
 */
#include "keyspace/exchange.h"

#include "keyspace/databases.h"
#include "keyspace/keyspace_internal.h"
#include "keyspace/make.h"
#include "keyspace/reaper.h"

/* Exchanges two atomic values that no other thread writes. */
#define EXCHANGE(a, b) atomic_store(b, atomic_exchange(a, atomic_load(b)))

/* Goes on above the versions of both, since the entries keep their versions. A
 * watched missing name counts as changed, since it may have existed in the
 * other keyspace. */
static void
exchange_stripe(struct stripe *a, struct stripe *b)
{
    struct table table = a->table;
    struct expire expire = a->expire;
    uint64_t version = (a->version > b->version ? a->version : b->version) + 1;

    a->table = b->table;
    b->table = table;
    a->expire = b->expire;
    b->expire = expire;
    a->version = a->older_removals = version;
    b->version = b->older_removals = version;
}

/* Exchanges values, not arrays: a thread may count keys without a lock. Every
 * database counts as swapped, so that every watched key that exists counts as
 * changed. */
static void
exchange_databases(struct keyspace *a, struct keyspace *b)
{
    size_t counts = (size_t)a->shards * a->databases;

    for (uint32_t db = 0; db < a->databases; db++) {
        uint32_t number = a->slot_dbs[db];

        EXCHANGE(&a->db_ids[db], &b->db_ids[db]);
        EXCHANGE(&a->slot_ids[db], &b->slot_ids[db]);
        a->slot_dbs[db] = b->slot_dbs[db];
        b->slot_dbs[db] = number;
        a->swaps[db]++;
        b->swaps[db]++;
    }
    for (size_t i = 0; i < counts; i++) {
        EXCHANGE(&a->counts[i].keys, &b->counts[i].keys);
        EXCHANGE(&a->counts[i].expires, &b->counts[i].expires);
    }
}

static void
exchange_cursors(struct keyspace *a, struct keyspace *b)
{
    unsigned expire_stripe = a->expire_stripe;
    unsigned dead_stripe = a->dead_stripe;
    uint64_t dead_cursor = a->dead_cursor;

    a->expire_stripe = b->expire_stripe;
    b->expire_stripe = expire_stripe;
    a->dead_stripe = b->dead_stripe;
    b->dead_stripe = dead_stripe;
    a->dead_cursor = b->dead_cursor;
    b->dead_cursor = dead_cursor;
}

void
keyspace_exchange(struct keyspace *ks, struct keyspace *other)
{
    CHECK(ks != other && ks->databases == other->databases &&
          ks->shards == other->shards);
    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        exchange_stripe(&ks->stripes[i], &other->stripes[i]);
        EXCHANGE(&ks->next_expiry_ms[i], &other->next_expiry_ms[i]);
    }
    for (unsigned i = 0; i < OCCUPIED_WORDS; i++) {
        EXCHANGE(&ks->occupied[i], &other->occupied[i]);
    }
    exchange_databases(ks, other);
    EXCHANGE(&ks->dead, &other->dead);
    exchange_cursors(ks, other);
    access_exchange(&ks->access, &other->access);
}

/* Waits only for what the reaper of OTHER is freeing already, since that thread
 * ends with OTHER. */
void
keyspace_discard(struct keyspace *ks, struct keyspace *other)
{
    struct reaper_set *set;

    if (other == NULL) {
        return;
    }
    CHECK(ks != other);
    if (keyspace_entries(other) > 0) {
        set = reaper_take_set(ks->reaper);
        keyspace_move_out(other, set);
        set->bytes = REAPER_COUNTS;
        reaper_give_set(ks->reaper, set);
    }
    keyspace_free(other);
}
