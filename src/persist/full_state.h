/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Has the full state of the data written: a snapshot, a base of the journal, or
 * a snapshot for replicas. One at a time, by a forked child; nothing outside of
 * this file knows that. Loop 0.
 */
#pragma once

#include "persist/child.h"

struct persist;

/* Describes what to write: the state at this place of the log, under the raised
 * gate. dir_fd: of the data directory or the journal's. */
struct child_job full_state_job(const struct persist *persist, int dir_fd,
                                const char *name, uint64_t position,
                                uint64_t sequence);

/* Begins to write, under the raised gate. Returns 0 or an errno value. */
int full_state_start(struct persist *persist, const struct child_job *job);

/* Returns true once, when the writing has ended, with the result: 0, or an
 * error of persist/child.h. */
bool full_state_has_ended(struct persist *persist, int *ret_error);

/* Breaks off what is being written: the step is ENDING until
 * full_state_has_ended. */
void full_state_break_off(struct persist *persist);

/* Breaks off the writing and waits until it has ended. Blocks. */
void full_state_stop(struct persist *persist);
