/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whole databases: FLUSHALL, FLUSHDB, SWAPDB. A client's database number maps
 * to an internal id, so that FLUSHDB and SWAPDB are O(1): the entries of a dead
 * id are invisible at once, and are reclaimed in the background like expired
 * ones. Everything here needs the raised gate.
 */
#pragma once

#include "keyspace/keyspace.h"

struct reaper_set;

void keyspace_flush_all(struct keyspace *ks);
void keyspace_flush_db(struct keyspace *ks, uint32_t db);
void keyspace_swap_db(struct keyspace *ks, uint32_t a, uint32_t b);

/* ---- for the other files of this room ------------------------------------ */

/* Returns the number of entries in all tables, dead ones included. */
uint64_t keyspace_entries(const struct keyspace *ks);

/* Moves all tables and heaps into SET. The keyspace is then empty; what is left
 * to do is to free the entries in SET. */
void keyspace_move_out(struct keyspace *ks, struct reaper_set *set);
