/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The data as a starting server would load it: the filters of a base, then the
 * groups of the increments, executed by the server's own commands. So the check
 * finds the same errors as a start. It needs as much memory as the data.
 */
#pragma once

#include "check/check_journal.h"
#include "keyspace/keyspace.h"

struct check_world;

struct check_world *check_world_new(void);
void check_world_free(struct check_world *world); /* NULL is fine */

struct keyspace *check_world_keyspace(struct check_world *world);

/* Loads a base. Damage is a failure, with a reason, unless leave_out: then
 * damaged filters are left out. */
bool check_world_load(struct check_world *world, int fd, bool leave_out,
                      char *ret_reason, size_t reason_size);

/* Returns how many items were not deleted, because effects of the base are lost
 * (replay/complete.h). */
uint64_t check_world_left_out(const struct check_world *world);

/* Lets full filters take more items from now on, as a log with gaps needs. */
void check_world_tolerate(struct check_world *world);

/* Executes a group as a start does. False: one of its commands failed; the
 * commands before it were executed. */
bool check_world_execute(struct check_world *world, struct slice commands,
                         char *ret_reason, size_t reason_size);

/* Loads the base of a journal, and executes its groups up to damage, or to a
 * group that fails: the fields of check_journal.h say which. False: damage in
 * the base. */
bool check_world_load_journal(struct check_world *world, struct check *check,
                              struct check_journal *journal, char *ret_reason,
                              size_t reason_size);

/* Loads the snapshot, the journal or the data directory at a path, draws a
 * progress bar meanwhile, and prints what is wrong. From a damaged journal it
 * loads what comes before the damage. False: nothing was loaded. */
bool check_world_load_path(struct check_world *world, struct check *check,
                           const char *path);
