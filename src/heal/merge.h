/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Merge on heal. A primary that was cut off takes writes that its replicas do
 * not get. When it then follows the replica that was promoted, a full
 * synchronization replaces its data. Before that, it saves the part of its log
 * that the new primary lacks (merge_save.h). Afterwards it offers the adds in
 * that part to the primary that it follows (repl/offer.h, BF.INSERT with
 * IFINCARNATION). Commands that cannot be offered go to a quarantine.
 *
 *   the backlog keeps what no replica has (primary_limits.merge_bytes)
 *   -> +FULLRESYNC says where the logs part (repl/wire.h)
 *   -> the snapshot waits: merge_needs_data
 *   -> a task collects the names, loop 0 looks up their incarnations in slices,
 *      the task writes the files
 *   -> the snapshot goes on; its end replaces the data
 *   -> batches from the file to the primary
 *
 * Loop 0, with a thread for the files.
 */
#pragma once

#include "heal/merge_save.h"

#include <stdbool.h>

struct merge;

struct merge *merge_new(const struct merge_roles *roles);
void merge_set_options(struct merge *merge,
                       const struct merge_options *options);

/* Closes the link, and waits for the thread. An unfinished save loses nothing,
 * since the data is not replaced before the save has ended. */
void merge_stop(struct merge *merge);
void merge_free(struct merge *merge); /* NULL is fine */

/* Begins to save the part of our log that a primary with this answer lacks, if
 * there is such a part and it is not saved yet. Returns whether a save runs:
 * then our data must stay until merge_needs_data returns false. */
bool merge_begin(struct merge *merge, const struct wire_answer *answer);
bool merge_needs_data(const struct merge *merge);

/* Does what is due. Call it when the thread may have finished something, and in
 * each tick. */
void merge_look(struct merge *merge);

/* Writes the heal files again, into a new data directory. */
void merge_write_again(struct merge *merge);
