/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the snapshots of salvage. The header of a snapshot says how many keys
 * follow, so the old file is read twice: by check_snapshot_look, then here.
 */
#pragma once

#include "check/check_make.h"
#include "check/check_snapshot.h"

/* Makes a new snapshot, `to`, of everything in fd that check_snapshot_look
 * found intact. Sets found->keys to the number of its keys. */
bool check_rescue(struct check_made *made, int fd, struct check_snapshot *found,
                  const char *to);
