/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the full state of the data while commands go on: a snapshot or a base
 * of the journal (persist->own), and at the same time a snapshot for replicas
 * (persist->synced). Only this file knows the walk and the log that belongs to
 * it. Errors are errno values; ECANCELED if the writing was broken off. Loop 0.
 */
#pragma once

#include "snapshot/walker.h"

struct full_state; /* persist/persist_state.h */
struct persist;

/* Start and end the threads. full_state_fini() waits for them, and may be
 * called twice. */
void full_state_init(struct full_state *state, struct persist *persist);
void full_state_fini(struct full_state *state);

/* Returns a job, which says what to write: the file `name` in dir_fd, which is
 * the data directory or the journal's directory. full_state_start() and
 * full_state_write_here() note the place of the log at which the state begins.
 */
struct walker_job full_state_job(const struct persist *persist, int dir_fd,
                                 const char *name);

/* Begins to write, outside the gate. */
void full_state_start(struct full_state *state, struct walker_job *job);

/* Writes the present state, while nothing changes: under the raised gate, or
 * before there are loops. Blocks, and returns 0 or an error. */
int full_state_write_here(struct persist *persist, struct walker_job *job);

/* full_state_is_through() returns whether the walk has visited everything and
 * waits for its end. Then the caller raises the gate and calls
 * full_state_end(). If that returns false, the walk still has something to
 * copy, and goes on. If it returns true, the written state is the present one;
 * the outputs are its place in the log. */
bool full_state_is_through(struct full_state *state);
bool full_state_end(struct full_state *state, uint64_t *ret_position,
                    uint64_t *ret_sequence);

/* Calls hooks.parks if the kind of commands that must wait for the walk has
 * changed. Outside the gate. */
void full_state_park(struct persist *persist);

/* Returns true once, when the writing has ended, with the result. Outside the
 * gate. */
bool full_state_has_ended(struct full_state *state, int *ret_error);

/* Breaks off the writing. For persist->own, persist->step is STEP_ENDING until
 * full_state_has_ended() returns true. For persist->synced the caller must call
 * the hook `ended` next, since the thread may wait for the pipe's reader. */
void full_state_break_off(struct full_state *state);
