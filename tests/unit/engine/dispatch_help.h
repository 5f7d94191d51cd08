/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random numbers, and names of keys in chosen stripes, for the tests of
 * dispatch. The names are the same in each run, since the process's hash seed
 * is not drawn.
 */
#pragma once

#include "base/hash.h"
#include "rig.h"

enum { KEYS = 6, NAME_MAX_BYTES = 16, LINE_MAX_BYTES = 128 };

/* Returns a random number below n. */
unsigned below(uint64_t *random, unsigned n);

extern char names[KEYS][NAME_MAX_BYTES];

/* Three names in one stripe, two in another, and one in a third, so that runs
 * hold several keys and break between others. */
void choose_names(void);

/* The time of the key, if it is there, is over from now on; nobody notices yet.
 */
void end_time_of(struct rig *rig, const char *name, uint32_t db);
