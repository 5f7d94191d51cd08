/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Has the full state of the data written while commands go on: a snapshot, or a
 * base of the journal (persist->own), and beside it a snapshot for replicas
 * (persist->synced). The walk and the log that belongs to it are known here
 * alone. Errors are errno values, ECANCELED if it was broken off. Loop 0.
 */
#pragma once

#include "snapshot/walker.h"

struct full_state; /* persist/persist_state.h */
struct persist;

/* Makes and frees the threads; free is fine after free, and waits. */
void full_state_init(struct full_state *state, struct persist *persist);
void full_state_fini(struct full_state *state);

/* Describes what to write, at the place of the log where full_state_start
 * begins. dir_fd: of the data directory or the journal's. */
struct walker_job full_state_job(const struct persist *persist, int dir_fd,
                                 const char *name);

/* Begins to write, outside the gate. */
void full_state_start(struct full_state *state, struct walker_job *job);

/* Writes the present state, while nothing changes: under the raised gate, or
 * before there are loops. Blocks, and returns 0 or an error. */
int full_state_write_here(struct persist *persist, struct walker_job *job);

/* Whether the walk waits for its end: the caller raises the gate and calls
 * full_state_end, which returns false if something is left to be copied;
 * otherwise the state that is written is the present one, at this place. */
bool full_state_is_through(struct full_state *state);
bool full_state_end(struct full_state *state, uint64_t *ret_position,
                    uint64_t *ret_sequence);

/* Calls hooks.parks if something else has to wait for the walk than before.
 * Outside the gate. */
void full_state_park(struct persist *persist);

/* Returns true once, when the writing has ended, with the result. Outside the
 * gate. */
bool full_state_has_ended(struct full_state *state, int *ret_error);

/* Breaks off what is being written. Of persist->own the step is ENDING until
 * full_state_has_ended; of persist->synced the hook `ended` must follow, since
 * the thread may wait for the pipe's reader. */
void full_state_break_off(struct full_state *state);
