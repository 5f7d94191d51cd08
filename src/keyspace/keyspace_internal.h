/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The structs that the files of this layer share: a stripe and the whole
 * keyspace. A stripe's fields need its lock, or the raised gate; atomic fields
 * may be read without them. Only this layer and its unit tests include this
 * file.
 */
#pragma once

#include "keyspace/access.h"
#include "keyspace/entry.h"
#include "keyspace/expire.h"
#include "keyspace/gate.h"
#include "keyspace/stripe_lock.h"
#include "keyspace/table.h"

#include <stdatomic.h>

enum {
    DB_SLOT_BITS = 16,
    OCCUPIED_WORDS = KEYSPACE_STRIPES / 64,
    CURSOR_PLACE_BITS = 42, /* with 10 bits of stripe: below 2^53 */
    REMOVALS = 8            /* remembered by a stripe */
};

struct gate;
struct reaper;

/* A removed entry, by which WATCH of a missing name learns whether the name was
 * written since. The database is not part of it, since databases may be
 * swapped. */
struct removal {
    uint64_t hash, version;
};

/* The lock has a cache line of its own: threads that wait for it read it all
 * the time, and must not slow down the owner's use of the table. Only removals
 * write next_removal. */
struct stripe {
    _Alignas(64) struct stripe_lock lock;
    uint32_t next_removal;
    _Alignas(64) struct table table;
    struct expire expire;
    uint64_t version;                  /* the last one given to an entry */
    struct removal removals[REMOVALS]; /* the latest */
    uint64_t older_removals; /* the highest version among earlier ones */
    uint64_t position;       /* of the journal, at the last change */
};

struct db_count {
    _Atomic int64_t keys, expires;
};

/* A database id is generation << 16 | slot. Clients' numbers map to ids; SWAPDB
 * swaps two of them, FLUSHDB gives the slot its next generation. An entry is
 * live if its id is the one that its slot has now, otherwise dead. */
struct keyspace {
    struct access access; /* must be the first: keyspace_access */
    atomic_bool keeps_expired;
    bool shared;     /* several threads take locks: walk.h */
    unsigned walks;  /* a bit for each walk under way; under the gate */
    unsigned shares; /* calls of keyspace_share that are on; only for loop 0 */
    unsigned shards; /* number of shards in `counts` */
    struct gate *gate;
    struct keyspace_expiry expiry;
    _Atomic uint32_t *db_ids;   /* by the client's number */
    _Atomic uint32_t *slot_ids; /* by slot */
    struct db_count *counts;    /* shards x databases, by slot */
    unsigned databases, threads;
    struct stripe_lock_slots lock_slots;
    /* Rarely used. */
    uint64_t *swaps;    /* how often the database was swapped, by the client's
                           number; under the gate */
    uint32_t *slot_dbs; /* the client's number, by slot; under the gate */
    uint32_t *epochs; /* how often the database was flushed, by slot; under the
                         gate */
    struct reaper *reaper;
    size_t counts_bytes;
    struct stripe stripes[KEYSPACE_STRIPES];
    /* A bit is set while the stripe has entries. */
    _Alignas(64) _Atomic uint64_t occupied[OCCUPIED_WORDS];
    /* The first expiry of each stripe, packed so that the reclaimer reads 128
     * cache lines instead of 1024. */
    _Alignas(64) _Atomic uint64_t next_expiry_ms[KEYSPACE_STRIPES];
    /* Entries of dead ids that are still in tables. */
    _Alignas(64) _Atomic int64_t dead;
    /* How far the one thread that reclaims is. */
    unsigned expire_stripe, dead_stripe;
    uint64_t dead_cursor;
    /* How far the one thread that moves entries is: defrag.h. */
    unsigned defrag_stripe;
    uint32_t defrag_turns; /* turns over all stripes */
    uint64_t defrag_cursor;
    /* For each walk: a bit is set while the walk has to come back to the
     * stripe. */
    _Atomic uint64_t again[GATE_WALKERS][OCCUPIED_WORDS];
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

/* Returns when the entry expires; 0 if it has no time to live. */
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

/* Returns the key of an entry of a live database. */
static inline struct key
keyspace_key_of(const struct keyspace *ks, const struct entry *entry,
                uint64_t hash)
{
    return (struct key){ .name = entry_name(entry),
                         .hash = hash,
                         .db = ks->slot_dbs[db_slot_of(entry->db_id)] };
}

/* Returns the first stripe >= from that has entries, or KEYSPACE_STRIPES. */
static inline unsigned
keyspace_next_occupied(const struct keyspace *ks, unsigned from)
{
    while (from < KEYSPACE_STRIPES) {
        uint64_t bits = atomic_load_explicit(&ks->occupied[from / 64],
                                             memory_order_relaxed) >>
                        (from % 64);

        if (bits != 0) {
            return from + (unsigned)__builtin_ctzll(bits);
        }
        from = (from / 64 + 1) * 64;
    }
    return KEYSPACE_STRIPES;
}
