/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fetches into the cache what several commands will read, all at the same time,
 * before the first of them executes (keyspace/ahead.h). It decides nothing, so
 * the commands may change what was fetched. Belongs to the executing loop.
 */
#pragma once

#include "engine/run.h"
#include "keyspace/ahead.h"

enum { AHEAD_FROM = 4 }; /* with fewer keys there is too little to gain */

/* Runs and their keys. {.count = 0} is empty. */
struct ahead {
    uint32_t count;
    struct key key[KEYSPACE_AHEAD_MAX];
    const struct run *run[KEYSPACE_AHEAD_MAX]; /* borrowed */
};

/* Fetches the entries of the keys. If a command's row has .ahead, which finds
 * its items, also fetches the cache lines of the filter that the items need.
 * Call it under the locks of all the keys. With fewer than AHEAD_FROM keys it
 * does nothing. */
void ahead_fetch(struct ahead *ahead, const struct keyspace *ks);
