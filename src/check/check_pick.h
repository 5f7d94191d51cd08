/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finds the one state that a path has: an increment, a snapshot or a journal.
 * If a data directory has a snapshot and a journal, picks the one that is
 * further in the log, as a start would, and prints a line that says so. False:
 * the reason was printed.
 */
#pragma once

#include "check/check_file.h"

bool check_pick_state(struct check *check, const char *path,
                      enum check_kind *ret_kind, char *ret_path);
