/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A full state on its way into a keyspace (snapshot/snapshot_format.h). Its
 * keys are copies from different positions of the log, of databases that may
 * have been flushed between two copies. The caller owns the keyspace alone;
 * until arrival_end no client may see it, and counts of keys mean nothing.
 */
#pragma once

#include "keyspace/keyspace.h"

/* Makes room in the tables for about so many keys, as far as there is memory.
 * The keyspace is empty. */
void arrival_expect(struct keyspace *ks, uint64_t keys);

/* Sets the epoch of the database with this number: the keys that come next
 * belong to it. The keys of all its epochs lie side by side. Epochs are below
 * 65,536. */
void arrival_set_epoch(struct keyspace *ks, uint32_t db, uint32_t epoch);

/* Sets the database to its next epoch, as a flush does. Call it after all keys
 * have come. */
void arrival_flush(struct keyspace *ks, uint32_t db);

/* In place of its version, a key remembers the position of the log up to which
 * its copy includes everything. Any change of the key erases that. */
static inline void
arrival_set_copied(struct entry *entry, uint64_t position)
{
    atomic_store_explicit(&entry->version, position, memory_order_relaxed);
}

static inline uint64_t
arrival_copied(const struct entry *entry)
{
    return atomic_load_explicit(&entry->version, memory_order_relaxed);
}

/* Adds items that were new to the filter when they were added, but which the
 * copy may have already. now_ms: when they were added, if the filter ages. */
MUST_CHECK enum bloom_status arrival_add(struct entry *entry,
                                         const struct bloom_env *env,
                                         const struct slice *items,
                                         size_t count, uint64_t now_ms);

/* Forgets the positions of the pieces of all deletable filters
 * (core/deletable.h), after the last effect. */
void arrival_forget_pieces(struct keyspace *ks);

/* Ends the arrival at this position of the log: keys get versions that no WATCH
 * has seen. epochs: there were keys of other epochs than 0. In that case, and
 * after a flush, the keys of the present epochs are counted, and all others are
 * dead. Returns false if there is a key of a later epoch than its database has.
 */
MUST_CHECK bool arrival_end(struct keyspace *ks, uint64_t position,
                            bool epochs);
