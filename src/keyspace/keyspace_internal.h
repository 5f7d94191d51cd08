/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of this layer share: the shape of a stripe and of the whole
 * keyspace. A stripe's body needs its lock (or the raised gate); what is
 * atomic may be read without. Nothing outside this layer includes it, except
 * its unit tests.
 */
#pragma once

#include "base/longest.h"
#include "base/metrics.h"
#include "keyspace/access.h"
#include "keyspace/expire.h"
#include "keyspace/keyspace.h"
#include "keyspace/reaper.h"
#include "keyspace/stripe_lock.h"
#include "keyspace/table.h"

#include <stdatomic.h>

enum {
    DB_SLOT_BITS = 16,
    OCCUPIED_WORDS = KEYSPACE_STRIPES / 64,
    CURSOR_BUCKET_BITS = 42, /* with 10 bits of stripe: below 2^53 */
    REMOVALS = 8,            /* remembered by a stripe */
    LOCK_SLICE = 64          /* buckets or removals in one hold of a lock */
};

/* An entry that was removed, for who watches a missing name: had it been
 * written since? In whatever database: they may have been swapped. */
struct removal {
    uint64_t hash, version;
};

/* The lock is on a line of its own: who waits for it looks at it all the time,
 * and must not take the table's line away from the holder by doing so. */
struct stripe {
    _Alignas(64) struct stripe_lock lock;
    _Alignas(64) struct table table;
    struct expire expire;
    uint64_t version;                  /* the last one given to an entry */
    struct removal removals[REMOVALS]; /* the last ones */
    uint32_t next_removal;
    uint64_t older_removals; /* the highest version among those before */
    uint64_t position;       /* of the log, at the last change */
};

struct db_count {
    _Atomic int64_t keys, expires;
};

/* A database id is generation << 16 | slot. Clients' numbers map to ids;
 * SWAPDB swaps two of them, FLUSHDB gives the slot its next generation. An
 * entry is live if its id is the one its slot has now. */
struct keyspace {
    struct keyspace_clock clock; /* must be the first */
    struct access_policy access_policy;
    atomic_bool access_paused;
    atomic_bool access_counts; /* of the policy: loop 0 looks outside of any
                                  section */
    atomic_bool keeps_expired;
    unsigned shards; /* of counts */
    struct gate *gate;
    struct keyspace_expiry expiry;
    _Atomic uint32_t *db_ids;   /* by the client's number */
    _Atomic uint32_t *slot_ids; /* by slot */
    struct db_count *counts;    /* shards x databases, by slot */
    unsigned databases, threads;
    struct stripe_lock_slots lock_slots;
    uint64_t *swaps; /* by the client's number, how often; under the gate */
    struct stripe stripes[KEYSPACE_STRIPES];
    /* Bit set: the stripe has entries. Changes only at none <-> some. */
    _Alignas(64) _Atomic uint64_t occupied[OCCUPIED_WORDS];
    /* The first expiry of each stripe, packed so that the reclaimer looks for
     * work in 128 lines instead of 1024. */
    _Alignas(64) _Atomic uint64_t next_expiry_ms[KEYSPACE_STRIPES];
    /* Entries of dead ids that are still in tables. */
    _Alignas(64) _Atomic int64_t dead;
    /* Of the one thread that reclaims. */
    unsigned expire_stripe, dead_stripe;
    uint64_t dead_cursor;
    uint64_t wall_ms, access_ms; /* at the last access_tick */
    /* What few ask for. */
    struct reaper *reaper;
    uint32_t *slot_dbs; /* by slot, the client's number; as swaps */
    size_t counts_bytes;
};

static inline uint32_t
db_id_of(const struct keyspace *ks, uint32_t db)
{
    return atomic_load_explicit(&ks->db_ids[db], memory_order_relaxed);
}

static inline uint32_t
db_slot_of(uint32_t db_id)
{
    return db_id & ((1U << DB_SLOT_BITS) - 1);
}

static inline bool
db_is_live(const struct keyspace *ks, uint32_t db_id)
{
    return atomic_load_explicit(&ks->slot_ids[db_slot_of(db_id)],
                                memory_order_relaxed) == db_id;
}

static inline struct db_count *
db_count_of(const struct keyspace *ks, unsigned shard, uint32_t slot)
{
    return &ks->counts[(size_t)shard * ks->databases + slot];
}

/* 0 if it has none. */
static inline uint64_t
entry_expiry(const struct stripe *stripe, const struct entry *entry)
{
    return entry->heap_index == EXPIRE_NONE
               ? 0
               : stripe->expire.items[entry->heap_index].at_ms;
}

static inline bool
entry_is_expired(const struct stripe *stripe, const struct entry *entry,
                 uint64_t now_ms)
{
    return entry->heap_index != EXPIRE_NONE &&
           stripe->expire.items[entry->heap_index].at_ms <= now_ms;
}

/* The walks' locks: none when this thread owns the gate. For how long is
 * counted in any case. */
static inline struct longest_span
walk_lock(struct keyspace *ks, unsigned thread, unsigned stripe, bool exclusive)
{
    if (ks->threads > 1 && !gate_is_mine(ks->gate, thread)) {
        keyspace_lock(ks, thread, stripe, exclusive);
    }
    return longest_begin();
}

static inline void
walk_unlock(struct keyspace *ks, unsigned thread, unsigned stripe,
            const struct longest_span *held)
{
    longest_end(LONGEST_LOCK, held, "walk");
    if (ks->threads > 1 && !gate_is_mine(ks->gate, thread)) {
        keyspace_unlock(ks, thread, stripe);
    }
}

/* keyspace.c: takes the entry at this link of the stripe's table out of
 * everything and frees it or has it freed; the link then holds the next one.
 * The caller calls table_fit when it is done with the stripe. */
void keyspace_remove_entry(struct keyspace *ks, unsigned stripe,
                           struct entry **link);

/* keyspace.c: entries in all tables, dead ones too; and out of them, with
 * nothing but their memory left to be freed. */
uint64_t keyspace_entries(const struct keyspace *ks);
void keyspace_move_out(struct keyspace *ks, struct reaper_set *set);

/* reclaim.c: the key that an entry of a live database is. */
struct key keyspace_key_of(const struct keyspace *ks, const struct entry *entry,
                           uint64_t hash);

/* scan.c: the first stripe >= from that has entries, or KEYSPACE_STRIPES. */
unsigned keyspace_next_occupied(const struct keyspace *ks, unsigned from);

/* reclaim.c: removes every dead entry, under the raised gate. */
void keyspace_purge_dead(struct keyspace *ks);

/* memory.c: the gauges of a filter that came, and the end of an entry with its
 * filter. Any thread. */
void keyspace_account_new(const struct bloom *bloom);
void keyspace_free_entry(struct entry *entry);
