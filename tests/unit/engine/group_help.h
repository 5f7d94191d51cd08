/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Groups of a log made by hand, for the tests of replay.
 */
#pragma once

#include "base/hash.h"
#include "rig.h"

#define MAKE(key, number)                                                      \
    "BF.INSERT " key " CAPACITY 10 ERROR 0.01 TIGHTENING 0.5 SEED <seed> "     \
    "EXPANSION 2 STRIPES 1 LINES 2 INCARNATION " number

/* Appends commands, between semicolons, as RESP. Words are between blanks,
 * <seed> is the fixed seed. */
void encode(struct buf *out, const char *text);

uint64_t incarnation_of(struct rig *rig, const char *name);
