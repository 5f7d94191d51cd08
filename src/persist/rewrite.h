/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rewrites of the journal, which also end its faults, and the first files of
 * the journal at a start. Loop 0.
 */
#pragma once

#include "journal/journal.h"
#include "journal/manifest.h"

struct persist;

/* Each of these functions takes the next step (persist_state.h). */
void rewrite_begin(struct persist *persist, enum journal_target how);
void rewrite_prepared(struct persist *persist);
/* Lets the journal turn to the new increment. The walk of the base ends at this
 * place of the log. Under the raised gate; memory only. */
void rewrite_turn(struct persist *persist, uint64_t position,
                  uint64_t sequence);
bool rewrite_has_turned(const struct persist *persist);
/* Gives up an increment that the journal has not turned to. */
void rewrite_abandon(struct persist *persist);
void rewrite_base_written(struct persist *persist, int error);
void rewrite_committed(struct persist *persist);

/* These are for data of another server, whose snapshot has its final name,
 * while the journal has no files and holds. rewrite_base() makes this snapshot
 * the base of a journal on the disk, at the place in struct persist_rewrite; a
 * task calls it. rewrite_based() lets the journal continue there. After an
 * error, a rebase will do that. */
void rewrite_base(struct persist *persist);
void rewrite_based(struct persist *persist);
/* Ends the step, instead of rewrite_based(), if other data has arrived since.
 */
void rewrite_outdated(struct persist *persist);

/* Lets rewrites of the journal keep the log from this position on, since a
 * merge on heal may need it (journal/kept.h). The increments that are kept have
 * at most limit_bytes. */
void persist_keep_log(struct persist *persist, uint64_t position,
                      uint64_t limit_bytes);

/* Ends a step whose result is no longer wanted. */
void rewrite_forget(struct persist *persist);

/* Notes that the journal has no files any more, so that the next journal is
 * built anew. */
void rewrite_start_over(struct persist *persist);

/* Returns the size of all files of the journal. */
uint64_t rewrite_journal_bytes(const struct persist *persist,
                               const struct journal_status *status);

/* Starts the journal after a load. False: the reason was logged. */
bool rewrite_resume(struct persist *persist);

/* Sets aside, at a start, a journal that is older than the snapshot. Returns
 * false if the journal is on and this has failed: the reason was logged. */
bool rewrite_set_aside(struct persist *persist, bool journals);

/* Returns a number above all numbers in the manifest. */
uint64_t rewrite_next_number(const struct manifest *manifest);
