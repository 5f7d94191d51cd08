/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Groups of a log by hand, for those who repeat them.
 */
#pragma once

#include "base/hash.h"
#include "rig.h"

#define MAKE(key, number)                                                      \
    "BF.INSERT " key " CAPACITY 10 ERROR 0.01 TIGHTENING 0.5 SEED <seed> "     \
    "EXPANSION 2 STRIPES 1 LINES 2 INCARNATION " number

/* Commands between semicolons, words between blanks, as RESP; <seed> is the
 * fixed seed. */
void encode(struct buf *out, const char *text);

uint64_t incarnation_of(struct rig *rig, const char *name);
