/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fetches into the cache what several commands will read, all of it at a time,
 * before the first of them executes (keyspace/ahead.h). Nothing is decided by
 * it, so commands may change anything of it. Belongs to the executing loop.
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

/* Fetches entries, and lines of filters whose items the rows' .ahead can tell.
 * Under the locks of all the keys. Fewer than AHEAD_FROM keys are left. */
void ahead_fetch(struct ahead *ahead, const struct keyspace *ks);
