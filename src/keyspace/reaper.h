/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The thread that frees what would take a loop too long: large filters, and
 * the tables of a whole keyspace. Giving never needs memory: entries are
 * queued through their own `next`, tables in a set that is kept ready.
 * All functions: any thread, and the reaper's mutex is a leaf lock.
 */
#pragma once

#include "base/thread.h"
#include "keyspace/expire.h"
#include "keyspace/keyspace.h"
#include "keyspace/table.h"

struct reaper;

/* Nobody knows how many bytes: the thread counts them before it frees. */
#define REAPER_COUNTS INT64_MIN

/* Everything that the stripes of a keyspace held. */
struct reaper_set {
    struct reaper_set *next;
    uint64_t entries;
    int64_t bytes; /* of their filters, more or less, or REAPER_COUNTS */
    struct table tables[KEYSPACE_STRIPES];
    struct expire expires[KEYSPACE_STRIPES];
};

/* Starts the thread; NULL without memory. */
struct reaper *reaper_try_new(enum thread_life life);

/* Frees all that was given, then ends the thread. */
void reaper_free(struct reaper *reaper);

/* Takes an entry that is out of its table, with its filter. */
void reaper_give_entry(struct reaper *reaper, struct entry *entry);

/* A set to be filled and given. Waits for an earlier one to come back if
 * there is no memory for another. */
struct reaper_set *reaper_take_set(struct reaper *reaper);
void reaper_give_set(struct reaper *reaper, struct reaper_set *set);

/* Returns when all that was given so far is freed. */
void reaper_wait(struct reaper *reaper);
