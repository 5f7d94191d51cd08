/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names to filters: 1024 stripes by the hash of the name alone (the database
 * is part of the entry), each with a hash table that grows by a bucket at a
 * time, an expiry heap, a version counter and a reader-writer lock
 * (stripe_lock.h). Dispatch takes the locks (keyspace_lock); what is called
 * below "under the lock" needs the name's stripe, shared to read, exclusive to
 * write, or the raised gate. With one thread no lock is taken.
 *
 * A database number seen by clients is mapped to an internal id, so that
 * FLUSHDB and SWAPDB are O(1): the dead id's entries are missing at once and
 * are reclaimed in the background like expired ones.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"
#include "core/bloom.h"
#include "keyspace/gate.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { KEYSPACE_STRIPES = 1024 };

struct keyspace;

/* One key as a command names it. */
struct key {
    struct slice name;
    uint64_t hash; /* hash_name(name) */
    uint32_t db;   /* as the client numbers it */
};

/* A stored key. Owned by the keyspace; a pointer is borrowed until the lock is
 * given back, and so is one to its filter. heap_index is UINT32_MAX when it has
 * no time to live. With a name of up to 16 bytes it is 128 bytes, two lines. */
struct entry {
    struct entry *next;
    uint64_t incarnation;     /* tells two lives of one name apart */
    _Atomic uint64_t version; /* from its stripe's counter, at the last write
                                 open; and whether somebody watches that */
    uint32_t db_id;
    uint32_t heap_index;
    uint32_t name_len;
    _Atomic uint32_t access; /* last use, and how often: keyspace/access.h */
    struct bloom bloom;
    char name[];
};

_Static_assert(offsetof(struct entry, name) <= 112, "an entry: two lines");

/* Who hears of the keys that keyspace_reclaim removes since their time is over,
 * and may put it off. On the thread that reclaims. All NULL: nobody. */
struct keyspace_expiry {
    /* Before a stripe is locked for a slice of them. False: not now. */
    bool (*begin)(void *ctx, unsigned thread);
    /* Of each, before it goes, under the lock. False: this and the others stay
     * for now. */
    bool (*remove)(void *ctx, unsigned thread, const struct key *key);
    /* After each begin that was true, still under the lock. */
    void (*end)(void *ctx, unsigned thread, unsigned stripe);
    void *ctx;
};

struct keyspace_options {
    unsigned threads;   /* loops that will call */
    unsigned databases; /* 1..65535 */
    struct keyspace_expiry expiry;
};

/* Starts the thread that frees large filters. The first aborts without memory:
 * it is for the start. The other returns NULL. */
struct keyspace *keyspace_new(const struct keyspace_options *options);
struct keyspace *keyspace_try_new(const struct keyspace_options *options);

/* When no other thread uses it. Waits until all filters are freed, which takes
 * a second for some million of them: on a loop, only at the end. */
void keyspace_free(struct keyspace *ks);

/* The same of OTHER, which nobody uses any more, without the wait: the
 * background thread of KS frees what is in it. Any thread, also while KS is in
 * use; NULL is fine. */
void keyspace_discard(struct keyspace *ks, struct keyspace *other);
struct gate *keyspace_gate(struct keyspace *ks);

static inline unsigned
keyspace_stripe_of(uint64_t hash)
{
    return (unsigned)(hash >> 54);
}

/* ---- locks (called by dispatch and by the walks below) ------------------- */
/* By the thread with this index; one that is none of the loops has an index
 * that is not below `threads`. */
void keyspace_lock(struct keyspace *ks, unsigned thread, unsigned stripe,
                   bool exclusive);
void keyspace_unlock(struct keyspace *ks, unsigned thread, unsigned stripe);

/* ---- one key, under its lock --------------------------------------------- */

/* For reads: NULL if it is missing or its time is over (at_ms <= now_ms). */
struct entry *keyspace_find(const struct keyspace *ks, const struct key *key,
                            uint64_t now_ms);

/* For writes: as find, but an expired entry is removed (ret_expired, which may
 * be NULL, says so), and the found entry gets a new version (so that WATCH sees
 * that it was opened for writing). */
struct entry *keyspace_open(struct keyspace *ks, const struct key *key,
                            uint64_t now_ms, bool *ret_expired);

/* Removes what keyspace_open found; large filters are freed in the background.
 */
void keyspace_remove(struct keyspace *ks, const struct key *key,
                     struct entry *entry);

/* Adds a name that keyspace_open just said is missing. On success the filter is
 * in the entry, and BLOOM, which must have come from an environment of
 * keyspace_env, is no more; on failure the caller has it still. Fails with
 * ERR_NOMEM. */
MUST_CHECK enum err keyspace_insert(struct keyspace *ks, const struct key *key,
                                    struct bloom *bloom, uint64_t incarnation,
                                    struct entry **ret_entry);

/* Gives the entry that keyspace_open just found another filter, incarnation
 * and time (0: it stays); the old filter is freed, in the background if it is
 * large. All or nothing, as keyspace_insert. */
MUST_CHECK enum err keyspace_replace(struct keyspace *ks, const struct key *key,
                                     struct entry *entry, struct bloom *bloom,
                                     uint64_t incarnation, uint64_t at_ms);

/* Gives the filter of ENTRY, which keyspace_open just found under FROM, the
 * name TO, in its database, with its incarnation, its time to live and its last
 * use. What is under TO goes, whether its time is over or not. All or nothing,
 * as keyspace_insert; in no case are filters copied. */
MUST_CHECK enum err keyspace_rename(struct keyspace *ks, const struct key *from,
                                    struct entry *entry, const struct key *to);

/* Opens and removes. False if missing. */
bool keyspace_delete(struct keyspace *ks, const struct key *key,
                     uint64_t now_ms);

/* Sets the absolute time at which the key ends (0 counts as 1) and gives it a
 * new version. Fails with ERR_NOMEM (the old time stays). */
MUST_CHECK enum err keyspace_set_expiry(struct keyspace *ks,
                                        const struct key *key,
                                        struct entry *entry, uint64_t at_ms);

/* False if it had none. */
bool keyspace_clear_expiry(struct keyspace *ks, const struct key *key,
                           struct entry *entry);

/* 0 if it has none. */
uint64_t keyspace_expiry(const struct keyspace *ks, const struct key *key,
                         const struct entry *entry);

/* Whether WATCH remembers the version that the key has. If nobody does, nobody
 * can see that a write which changes nothing left it: such a write may look the
 * key up with keyspace_find, under the shared lock. */
#define KEYSPACE_WATCHED ((uint64_t)1 << 63) /* in a version */
static inline bool
keyspace_is_watched(const struct entry *entry)
{
    return (atomic_load_explicit(&entry->version, memory_order_relaxed) &
            KEYSPACE_WATCHED) != 0;
}

/* What WATCH remembers of a key, whose version is watched from then on; exists
 * is false for a missing or expired one, then version is its stripe's. */
struct key_version {
    uint64_t version;
    uint64_t swaps; /* of its database */
    bool exists;
};
struct key_version keyspace_version(const struct keyspace *ks,
                                    const struct key *key, uint64_t now_ms);

/* Whether the key was changed, made or removed since, or its database swapped.
 * A name that was missing may also count as changed if, meanwhile, its stripe
 * was written to and lost many names or all of a database; never the other way
 * round. */
bool keyspace_changed(const struct keyspace *ks, const struct key *key,
                      struct key_version seen, uint64_t now_ms);

/* ---- positions ----------------------------------------------------------- */

/* How far the log was when the stripe was last changed: what a reader of it
 * saw may be told once that is released. Under the stripe's lock, exclusive to
 * set. All of them: under the raised gate. */
uint64_t keyspace_position(const struct keyspace *ks, unsigned stripe);
void keyspace_set_position(struct keyspace *ks, unsigned stripe,
                           uint64_t position);
void keyspace_set_all_positions(struct keyspace *ks, uint64_t position);

/* ---- accounts ------------------------------------------------------------ */

/* Brings the bf_* gauges from what a filter was to what it is now. Insert and
 * delete do it themselves; call it after adds. */
void keyspace_account(const struct bloom_info *before,
                      const struct bloom_info *after);

/* What filters may take; changed under the raised gate. */
struct keyspace_memory {
    uint64_t maxmemory_bytes; /* 0: none */
    /* Keys are evicted to stay below it. Then what begins below, or hardly
     * above, may end above, for the next eviction to make up for, unless it is
     * larger than all of maxmemory; and memory that is on its way back counts
     * as free. */
    bool evicts;
    /* Without maxmemory, leaves a part of the machine to others: clients may
     * not promise themselves all of it. What they were given loads again. */
    bool shares;
};

/* Whether more than this is in use, without what is on its way back or waits to
 * be written to the journal. */
bool keyspace_is_over(uint64_t maxmemory_bytes);

/* The environment of filters that live in a keyspace: counted memory, refused
 * beyond maxmemory_bytes or the machine. CTX must outlive the env; it is read
 * at each allocation. */
struct bloom_env keyspace_env(const struct keyspace_memory *ctx,
                              uint64_t size_limit_bytes);

/* Bytes one entry costs beside its filter, for MEMORY USAGE. */
size_t keyspace_entry_bytes(const struct entry *entry);

/* Keys, and keys with a time to live, expired ones not yet reclaimed included,
 * as Redis counts them. Without locks. */
void keyspace_count(const struct keyspace *ks, uint32_t db, uint64_t *ret_keys,
                    uint64_t *ret_expires);

/* ---- walks: these lock one stripe at a time by themselves; never call them
 * with a stripe lock held (under the raised gate they take none) ------------
 */

/* Borrowed for the call; return false to stop after this bucket. */
typedef bool (*keyspace_visit_fn)(void *ctx, const struct entry *entry,
                                  uint64_t expires_at_ms);

/* Visits the live keys of db in at least one bucket, and in buckets after it
 * until `want` keys or `buckets_max` buckets were seen, always whole buckets.
 * Returns the next cursor, 0 when all were visited. Cursor: stripe and
 * reverse-bit bucket (keyspace/table.h), good however tables grow and shrink
 * meanwhile: a key that is there from the first to the last call is visited at
 * least once. A cursor is below 2^53; one out of range ends the walk. */
uint64_t keyspace_scan(struct keyspace *ks, unsigned thread, uint32_t db,
                       uint64_t cursor, size_t want, size_t buckets_max,
                       uint64_t now_ms, keyspace_visit_fn visit, void *ctx);

/* Calls visit once with a random live key of db; false if there is none. */
bool keyspace_random(struct keyspace *ks, unsigned thread, uint32_t db,
                     uint64_t now_ms, keyspace_visit_fn visit, void *ctx);

/* Removes dead and expired entries for about budget_us of work, at least one
 * slice; true if there may be more to do at once. Call it inside a gate
 * section, from one thread. The second one leaves what is expired. */
bool keyspace_reclaim_dead(struct keyspace *ks, unsigned thread,
                           uint64_t budget_us);
bool keyspace_reclaim(struct keyspace *ks, unsigned thread, uint64_t now_ms,
                      uint64_t budget_us);

/* While it is on, keyspace_reclaim leaves keys whose time is over; nobody finds
 * them all the same. Any thread. */
void keyspace_keep_expired(struct keyspace *ks, bool on);

/* ---- the world, under the raised gate ------------------------------------ */

void keyspace_flush_all(struct keyspace *ks);
void keyspace_flush_db(struct keyspace *ks, uint32_t db);
void keyspace_swap_db(struct keyspace *ks, uint32_t a, uint32_t b);

/* All data of two keyspaces changes places, times to live and last uses
 * included; they were made with equal options, but for `expiry`. OTHER is the
 * caller's alone. For who watches, every key of both has changed, and every
 * missing name too. Positions stay: set them afterwards. Takes as long as there
 * are stripes and databases, whatever is in them; then keyspace_discard gets
 * rid of OTHER. */
void keyspace_exchange(struct keyspace *ks, struct keyspace *other);

/* Visits every key of every database, expired ones included, while nothing can
 * change: under the raised gate, in a child forked under it, or before there
 * are loops. Neither allocates nor locks. False if visit returned false, which
 * ends it. */
typedef bool (*keyspace_each_fn)(void *ctx, uint32_t db,
                                 const struct entry *entry,
                                 uint64_t expires_at_ms);
bool keyspace_each(const struct keyspace *ks, keyspace_each_fn visit,
                   void *ctx);
unsigned keyspace_databases(const struct keyspace *ks);

/* Blocks until the background thread has freed all it was given so far; for
 * FLUSHALL SYNC and tests. */
void keyspace_wait_freed(struct keyspace *ks);
