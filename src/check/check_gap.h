/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes the intact groups of a damaged log, command by command, past those
 * that fail because they depend on lost data.
 *
 * To delete an item from a filter that never got it clears bits of others. So
 * behind a gap an item of a deletable filter is deleted only if its add is
 * known: it was executed here, or the filter came whole since the gap. And the
 * places that the log names (keyspace/redo.h) are those of a filter that had
 * the lost items too, so the filter itself finds the places again. An item that
 * is not deleted may still be found; no other one is lost.
 */
#pragma once

#include "check/check_world.h"

struct check_gap;

struct check_gap *check_gap_new(struct check_world *world);
void check_gap_free(struct check_gap *gap); /* NULL is fine */

/* Notes that something is lost before the next group. */
void check_gap_open(struct check_gap *gap);

/* Executes a group. Returns how many commands failed. */
uint64_t check_gap_execute(struct check_gap *gap, struct slice commands);

/* Prints for each filter how many deletions were left out. Returns their sum.
 */
uint64_t check_gap_complain(const struct check_gap *gap, struct check *check,
                            const char *path);
