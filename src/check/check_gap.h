/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes the intact groups of a damaged log, command by command, and leaves
 * out the commands that fail because they depend on lost data.
 *
 * Deleting an item from a filter that never got it clears bits of other items.
 * So behind a gap an item of a deletable filter is deleted only if its add is
 * known: it was executed here, or the whole filter came after the gap. The
 * places in the log (keyspace/redo.h) are those of a filter that also had the
 * lost items, so the filter finds the places anew. An item whose deletion is
 * left out may still be found, but no other item is lost.
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
