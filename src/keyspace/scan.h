/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Walks over all stripes: SCAN, a random key, and every key. The first two lock
 * one stripe at a time themselves: the caller holds no stripe lock. Under the
 * raised gate they take no lock.
 */
#pragma once

#include "base/longest.h"
#include "keyspace/keyspace.h"

/* Called for each visited entry, which is borrowed for the call. Returns false
 * to stop after this step. */
typedef bool (*keyspace_visit_fn)(void *ctx, const struct entry *entry,
                                  uint64_t expires_at_ms);

/* Visits the live keys of DB in steps of about eight keys, at least one, until
 * `want` keys were seen or `steps_max` steps made. Returns the next cursor, 0
 * when all were visited. A cursor is a stripe and a place in the order of
 * reversed bits (table.h); it stays valid while tables grow and shrink: a key
 * that exists from the first call to the last is visited at least once. A
 * cursor is below 2^53; a larger one ends the walk. */
uint64_t keyspace_scan(struct keyspace *ks, unsigned thread, uint32_t db,
                       uint64_t cursor, size_t want, size_t steps_max,
                       uint64_t now_ms, keyspace_visit_fn visit, void *ctx);

/* Calls visit once with a random live key of DB; returns false if there is
 * none. */
bool keyspace_random(struct keyspace *ks, unsigned thread, uint32_t db,
                     uint64_t now_ms, keyspace_visit_fn visit, void *ctx);

/* Visits every key of every database, expired ones included, while nothing can
 * change: under the raised gate, or before there are loops. It neither
 * allocates nor locks. Returns false if visit returned false, which ends the
 * walk. */
typedef bool (*keyspace_each_fn)(void *ctx, uint32_t db,
                                 const struct entry *entry,
                                 uint64_t expires_at_ms);
bool keyspace_each(const struct keyspace *ks, keyspace_each_fn visit,
                   void *ctx);

/* ---- for the other walks of this room ------------------------------------ */

enum { SCAN_SLICE = 32 }; /* steps or removals under one lock */

/* Visits the keys of all databases, expired ones too, but not those that a
 * flush has removed, in some steps of a stripe: at most SCAN_SLICE, and none
 * after the one in which visit returned false. Returns the next cursor in the
 * stripe, or 0 at the stripe's end. Call it under the stripe's lock. */
typedef bool (*scan_visit_fn)(void *ctx, struct entry *entry,
                              uint64_t expires_at_ms);
uint64_t scan_slice_all(struct keyspace *ks, unsigned stripe, uint64_t cursor,
                        scan_visit_fn visit, void *ctx);

/* Locks a stripe, unless this thread has raised the gate, and times how long it
 * is locked. */
struct longest_span scan_lock(struct keyspace *ks, unsigned thread,
                              unsigned stripe, bool exclusive);
void scan_unlock(struct keyspace *ks, unsigned thread, unsigned stripe,
                 const struct longest_span *locked);
