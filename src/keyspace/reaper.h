/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The thread that frees what would take a loop too long: large filters, and
 * the tables of a whole keyspace. Giving it something never needs memory:
 * entries are queued through a field of their own, tables in a spare set. Any
 * thread may call; the reaper's mutex is a leaf lock.
 */
#pragma once

#include "base/thread.h"
#include "keyspace/expire.h"
#include "keyspace/table.h"

struct reaper;

/* The value of reaper_set.bytes if the giver does not know it: the reaper then
 * counts first. */
#define REAPER_COUNTS INT64_MIN

/* All tables and heaps of a keyspace. */
struct reaper_set {
    struct reaper_set *next;
    uint64_t entries;
    int64_t bytes; /* of the filters, about; or REAPER_COUNTS */
    struct table tables[KEYSPACE_STRIPES];
    struct expire expires[KEYSPACE_STRIPES];
};

/* Starts the thread. Returns NULL without memory. */
struct reaper *reaper_try_new(enum thread_life life);

/* Frees everything that was given, then ends the thread. */
void reaper_free(struct reaper *reaper);

/* Takes ownership of an entry that is in no table, and of its filter. */
void reaper_give_entry(struct reaper *reaper, struct entry *entry);

/* Returns a set for the caller to fill and give. Waits for an earlier one to
 * be freed if there is no memory for another. */
struct reaper_set *reaper_take_set(struct reaper *reaper);
void reaper_give_set(struct reaper *reaper, struct reaper_set *set);

/* Returns when everything that was given so far is freed. */
void reaper_wait(struct reaper *reaper);
