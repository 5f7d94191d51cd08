/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Removes entries that no command can see: keys that have expired, and entries
 * of databases that were flushed. Works in slices, so that a stripe is locked
 * for some tens of microseconds. One thread at a time, inside a gate section.
 */
#pragma once

#include "keyspace/keyspace.h"

/* Removes dead and expired entries for about budget_us, at least one slice.
 * Returns true if there may be more to do at once. keyspace_reclaim_dead leaves
 * expired keys. */
bool keyspace_reclaim(struct keyspace *ks, unsigned thread, uint64_t now_ms,
                      uint64_t budget_us);
bool keyspace_reclaim_dead(struct keyspace *ks, unsigned thread,
                           uint64_t budget_us);

/* Says whether keyspace_reclaim leaves expired keys; commands do not find them
 * in any case. Any thread. */
void keyspace_keep_expired(struct keyspace *ks, bool on);

/* Removes every dead entry. Under the raised gate. */
void keyspace_purge_dead(struct keyspace *ks);
