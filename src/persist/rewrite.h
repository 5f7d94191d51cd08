/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rewrites of the journal, which also end every fault, and its first files at a
 * start. Loop 0.
 */
#pragma once

#include "journal/journal.h"
#include "journal/manifest.h"

struct persist;

/* Each of these moves the step on. */
void rewrite_begin(struct persist *persist, enum journal_target how);
void rewrite_prepared(struct persist *persist);
/* Turns the journal to the new increment, at the end of the base's walk, which
 * is this place of the log. Under the raised gate; memory only. */
void rewrite_turn(struct persist *persist, uint64_t position,
                  uint64_t sequence);
bool rewrite_has_turned(const struct persist *persist);
/* Gives up an increment that the journal has not turned to. */
void rewrite_abandon(struct persist *persist);
void rewrite_base_written(struct persist *persist, int error);
void rewrite_committed(struct persist *persist);

/* For data of another server, whose snapshot is in its place while the journal
 * is empty, and holds: base makes that snapshot the base of a journal at the
 * place that persist_rewrite says, on the disk (a task); based lets the journal
 * go on there, or, after an error, leaves that to a rebase. */
void rewrite_base(struct persist *persist);
void rewrite_based(struct persist *persist);
/* Instead of that: other data has come since. */
void rewrite_outdated(struct persist *persist);

/* Rewrites of the journal keep the log from this position on, as far as the
 * increments that they leave out have at most so many bytes: a merge on heal
 * may need it (journal/kept.h). */
void persist_keep_log(struct persist *persist, uint64_t position,
                      uint64_t limit_bytes);

/* Ends a step whose result is no longer wanted. */
void rewrite_forget(struct persist *persist);

/* The journal has no files any more; the next one is built. */
void rewrite_start_over(struct persist *persist);

/* Returns the size of all files of the journal. */
uint64_t rewrite_journal_bytes(const struct persist *persist,
                               const struct journal_status *status);

/* Starts the journal after a load. False: the reason was logged. */
bool rewrite_resume(struct persist *persist);

/* At a start: sets a journal aside that is older than the snapshot. False if
 * the journal is on and that failed: the reason was logged. */
bool rewrite_set_aside(struct persist *persist, bool journals);

/* Returns a number above all that the manifest names. */
uint64_t rewrite_next_number(const struct manifest *manifest);
