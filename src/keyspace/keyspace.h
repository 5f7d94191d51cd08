/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The map from names to filters. The hash of a name alone selects one of 1024
 * stripes; the database is part of the entry. A stripe has a hash table that
 * grows by a bucket at a time, an expiry heap, a version counter and a
 * reader-writer lock (stripe_lock.h). This header has the locks and the
 * operations on one key; walks are in scan.h, FLUSHALL and the like in
 * databases.h.
 *
 * Dispatch takes the locks. "Under the lock" means: the name's stripe is
 * locked, shared to read, exclusive to write, or the gate is raised (gate.h).
 * With one thread no lock is taken.
 */
#pragma once

#include "base/err.h"
#include "keyspace/access.h"
#include "keyspace/entry.h"

#include <stdbool.h>

struct gate;
struct keyspace;

struct gate *keyspace_gate(struct keyspace *ks);

/* Returns the record of last uses (access.h). */
static inline struct access *
keyspace_access(struct keyspace *ks)
{
    return (struct access *)ks; /* its first member */
}

unsigned keyspace_databases(const struct keyspace *ks);

/* Returns the number of loops. */
unsigned keyspace_threads(const struct keyspace *ks);

/* ---- locks --------------------------------------------------------------- */

/* Returns whether there are several threads; with one, no lock is taken. */
bool keyspace_is_shared(const struct keyspace *ks);

/* Lock and unlock a stripe. `thread` is the index of the calling loop, from 0
 * on. A thread that is not a loop passes an index of keyspace_options.threads
 * or above. */
void keyspace_lock(struct keyspace *ks, unsigned thread, unsigned stripe,
                   bool exclusive);
void keyspace_unlock(struct keyspace *ks, unsigned thread, unsigned stripe);

/* ---- one key, under its lock --------------------------------------------- */

/* Finds a key to read: NULL if it is missing or expired (at_ms <= now_ms). */
struct entry *keyspace_find(const struct keyspace *ks, const struct key *key,
                            uint64_t now_ms);

/* Prefetch what keyspace_find reads first: the key's stripe, then the line of
 * its table that has the key. Call the first for many keys before the second.
 * The first needs no lock, the second needs the key's lock, shared or
 * exclusive. They never change a result. keyspace_look_ahead (ahead.h) fetches
 * the entries too. */
void keyspace_prefetch_stripe(const struct keyspace *ks, uint64_t hash);
void keyspace_prefetch_line(const struct keyspace *ks, const struct key *key);

/* Finds a key to write, as keyspace_find does. Removes an expired entry, and
 * reports that in *ret_expired, which may be NULL. Gives the entry that it
 * finds a new version, so that WATCH notices. */
struct entry *keyspace_open(struct keyspace *ks, const struct key *key,
                            uint64_t now_ms, bool *ret_expired);

/* Removes the entry that keyspace_open found. Large filters are freed in the
 * background. */
void keyspace_remove(struct keyspace *ks, const struct key *key,
                     struct entry *entry);

/* Adds a name after keyspace_open returned NULL for it. BLOOM must have been
 * made with an environment of keyspace_env. On success the filter's data moves
 * into the entry, and BLOOM itself is freed. On failure (ERR_NOMEM) the caller
 * still owns BLOOM. */
MUST_CHECK enum err keyspace_insert(struct keyspace *ks, const struct key *key,
                                    struct bloom *bloom, uint64_t incarnation,
                                    struct entry **ret_entry);

/* Does the same for a filter whose struct the caller keeps. After success the
 * filter in it must not be used any more. */
MUST_CHECK enum err keyspace_put(struct keyspace *ks, const struct key *key,
                                 const struct bloom *bloom,
                                 uint64_t incarnation,
                                 struct entry **ret_entry);

/* Adds a name with an empty filter, which is made inside the entry with an
 * environment of keyspace_env. Returns what bloom_new() returns; unless that is
 * BLOOM_OK, nothing has changed. An old entry of the name stays beside the new
 * one, and the caller removes it. */
enum bloom_status keyspace_create(struct keyspace *ks, const struct key *key,
                                  const struct bloom_params *params,
                                  const struct bloom_env *env,
                                  uint64_t incarnation,
                                  struct entry **ret_entry);

/* Gives the entry that keyspace_open has just found another filter, another
 * incarnation and another expiry (0: none). The old filter is freed, in the
 * background if it is large. Ownership and failure are as in keyspace_insert;
 * on failure the entry is unchanged. */
MUST_CHECK enum err keyspace_replace(struct keyspace *ks, const struct key *key,
                                     struct entry *entry, struct bloom *bloom,
                                     uint64_t incarnation, uint64_t at_ms);

/* Moves the filter of ENTRY, which keyspace_open has just found under FROM, to
 * the name TO, with its incarnation, expiry and last use. An entry under TO is
 * removed, expired or not. The filter is not copied. Fails with ERR_NOMEM, and
 * nothing is changed. */
MUST_CHECK enum err keyspace_rename(struct keyspace *ks, const struct key *from,
                                    struct entry *entry, const struct key *to);

/* Finds and removes a key. Returns false if it is missing or expired. */
bool keyspace_delete(struct keyspace *ks, const struct key *key,
                     uint64_t now_ms);

/* Sets the absolute time at which the key expires (0 counts as 1) and gives it
 * a new version. Fails with ERR_NOMEM, and the old time stays. */
MUST_CHECK enum err keyspace_set_expiry(struct keyspace *ks,
                                        const struct key *key,
                                        struct entry *entry, uint64_t at_ms);

/* Removes the key's time to live. Returns false if the key had none. */
bool keyspace_clear_expiry(struct keyspace *ks, const struct key *key,
                           struct entry *entry);

/* Returns when the key expires, 0 for never. */
uint64_t keyspace_expiry(const struct keyspace *ks, const struct key *key,
                         const struct entry *entry);

/* Returns whether a WATCH has read the present version of the entry. If none
 * has, a write that changes nothing need not give the entry a new version: it
 * may find the key with keyspace_find, under the shared lock. */
#define KEYSPACE_WATCHED ((uint64_t)1 << 63) /* in a version */
static inline bool
keyspace_is_watched(const struct entry *entry)
{
    return (atomic_load_explicit(&entry->version, memory_order_relaxed) &
            KEYSPACE_WATCHED) != 0;
}

/* What WATCH stores for each key. If the key is missing or expired, `exists` is
 * false and `version` is the stripe's. */
struct key_version {
    uint64_t version;
    uint64_t swaps; /* how often its database was swapped */
    bool exists;
};

/* Returns the version and marks it as watched. */
struct key_version keyspace_version(const struct keyspace *ks,
                                    const struct key *key, uint64_t now_ms);

/* Returns whether the key was changed, created or removed since `seen`, or its
 * database was swapped. A change is never missed. A key that was missing may
 * count as changed by mistake, if many other names of its stripe or a whole
 * database were removed meanwhile. */
bool keyspace_changed(const struct keyspace *ks, const struct key *key,
                      struct key_version seen, uint64_t now_ms);

/* Removes an entry whose name has this hash. Large filters are freed in the
 * background. Only this layer calls it. */
void keyspace_remove_entry(struct keyspace *ks, uint64_t hash,
                           struct entry *entry);

/* ---- journal positions --------------------------------------------------- */

/* Return and set the journal's position at the stripe's last change. A reply
 * about a key of this stripe may be sent once that position is released. Read
 * it under the stripe's lock, and set it under the exclusive lock. Set all
 * stripes' positions under the raised gate. */
uint64_t keyspace_position(const struct keyspace *ks, unsigned stripe);
void keyspace_set_position(struct keyspace *ks, unsigned stripe,
                           uint64_t position);
void keyspace_set_all_positions(struct keyspace *ks, uint64_t position);

/* ---- counts -------------------------------------------------------------- */

/* Counts the keys of a database, and those with a time to live. Expired keys
 * that are not reclaimed yet count, as in Redis. Needs no lock. */
void keyspace_count(const struct keyspace *ks, uint32_t db, uint64_t *ret_keys,
                    uint64_t *ret_expires);

/* Counts the keys of all databases. */
uint64_t keyspace_count_keys(const struct keyspace *ks);

/* Blocks until the reaper has freed everything given to it so far; for FLUSHALL
 * SYNC and tests. */
void keyspace_wait_freed(struct keyspace *ks);
