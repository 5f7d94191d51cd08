/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The snapshots that salvage writes. A snapshot's header says how many keys
 * follow, so the old one is read twice: check_snapshot_look, then this.
 */
#pragma once

#include "tools/check_make.h"
#include "tools/check_snapshot.h"

/* A new snapshot of all that was found to be intact in fd (-1: nothing, an
 * empty one), with this stamp. False, and said: it could not be written. */
bool check_rescue(struct check_made *made, int fd,
                  const struct check_snapshot *found,
                  const struct snapshot_stamp *stamp, const char *to);
