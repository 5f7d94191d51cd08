/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The place of the log (position and sequence), its history, and its tap. Loop
 * 0, each under the raised gate unless a line says otherwise.
 */
#pragma once

#include "base/slice.h"
#include "journal/history.h"
#include "journal/journal_hooks.h"

#include <stdbool.h>
#include <stdint.h>

struct persist;
struct persist_point; /* persist/persist_state.h */

/* Returns the place of the log now, at the end of a group. Also on loop 0 of a
 * replica without the gate. */
void persist_place(struct persist *persist, uint64_t *ret_position,
                   uint64_t *ret_sequence);

/* Finds up to which position of the log the disk has all data, so that a start
 * after a kill or a loss of power finds it, or what followed it. With a
 * journal: what that has synced; without one: the last snapshot. False: there
 * is none, or the log has gone on from another place. Loop 0, inside a section
 * of the gate or under it. */
bool persist_stored(const struct persist *persist, uint64_t *ret_position);

/* Returns the history that the last snapshot on the disk names; "": none. */
const char *persist_stored_history(const struct persist *persist);

/* Returns where the log is now, with its history. */
struct persist_point place_point(struct persist *persist);

/* Takes the place and the history over from a load. */
void place_set(struct persist *persist);

/* The log is off from now on: its position grows with the changes. */
void place_begin_idle(struct persist *persist);

/* All data was exchanged for a state that no history has: the position moves,
 * and a history without a past begins. */
void place_restart(struct persist *persist);

/* ---- histories ----------------------------------------------------------- */

/* Returns the log's history. Within a section of the gate, or under it. */
const struct history *persist_history(const struct persist *persist);

/* Begins a new history here: a promotion, the start of a primary. Any loop. A
 * log that is on records it, in a group of its own. */
void persist_renew_history(struct persist *persist);

/* Executes REPLCONF HISTORY on a replica or at the load: the group that has it
 * begins at the log's position now. Ignores what is no id. */
void persist_note_history(struct persist *persist, struct slice id);

/* ---- the tap ------------------------------------------------------------- */

/* Sets the tap for replicas, as journal_set_tap; NULL removes it. Afterwards
 * effects go to the journal (hooks.journaling). If the present history began
 * while there was no log to record it, the first group records it. A replica's
 * history always comes from its primary, so a replica adds nothing. Raises the
 * gate itself. */
void persist_set_tap(struct persist *persist, const struct journal_tap *tap);
bool persist_is_tapped(const struct persist *persist);

/* Set and remove the tap for a walk. Return the place of the log. */
void place_tap_walk(struct persist *persist, enum journal_tap_use use,
                    const struct journal_tap *tap, uint64_t *ret_position,
                    uint64_t *ret_sequence);
void place_untap_walk(struct persist *persist, enum journal_tap_use use,
                      uint64_t *ret_position, uint64_t *ret_sequence);

/* Whether the log is on: there is a journal or a tap. */
bool place_is_logged(const struct persist *persist);
