/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The place of the log (position and sequence), its history, and its tap. Call
 * the functions on loop 0, under the raised gate, unless a line says otherwise.
 */
#pragma once

#include "base/slice.h"
#include "journal/history.h"
#include "journal/journal_hooks.h"

#include <stdbool.h>
#include <stdint.h>

struct persist;
struct persist_point; /* persist/persist_state.h */

/* Returns the place of the log now, at the end of a group. On a replica, loop 0
 * may call it without the gate. */
void persist_place(struct persist *persist, uint64_t *ret_position,
                   uint64_t *ret_sequence);

/* Finds the position of the log up to which the disk has all data: even after a
 * kill or a loss of power, a start finds the data of that position or a later
 * one. That is the synced position of the journal or the position of the last
 * snapshot, whichever is higher. False: there is none, or the log has continued
 * from another place. Loop 0, inside a section of the gate or with the gate
 * raised. */
bool persist_stored(const struct persist *persist, uint64_t *ret_position);

/* Returns the history that the last snapshot on the disk names; "": none. */
const char *persist_stored_history(const struct persist *persist);

/* Returns the history and the present position of the log. */
struct persist_point place_point(struct persist *persist);

/* Sets the place and the history to those of the load. */
void place_set(struct persist *persist);

/* Notes that the log is off from now on: its position then grows with the
 * changes. */
void place_begin_idle(struct persist *persist);

/* Notes that all data was replaced by a state that belongs to no history: the
 * position rises, and a history without a past begins. */
void place_restart(struct persist *persist);

/* ---- histories ----------------------------------------------------------- */

/* Returns the log's history. Inside a section of the gate, or with the gate
 * raised. */
const struct history *persist_history(const struct persist *persist);

/* Begins a new history at the present position: at a promotion, and at the
 * start of a primary. A log that is on records it, in a group of its own. Any
 * loop. */
void persist_renew_history(struct persist *persist);

/* Executes REPLCONF HISTORY on a replica or at the load: the group with this
 * command begins at the log's present position. Ignores a text that is no id.
 */
void persist_note_history(struct persist *persist, struct slice id);

/* ---- the tap ------------------------------------------------------------- */

/* Sets the tap for replicas, as journal_set_tap does, and so turns the log on.
 * NULL removes the tap, and turns the log off unless a journal or a walk needs
 * it. Calls hooks.journaling. If the present history began while the log was
 * off, the first group records it. A replica writes no such group, since its
 * primary has recorded the history. Raises the gate itself. */
void persist_set_tap(struct persist *persist, const struct journal_tap *tap);
bool persist_is_tapped(const struct persist *persist);

/* Set and remove the tap for a walk. Return the place of the log. */
void place_tap_walk(struct persist *persist, enum journal_tap_use use,
                    const struct journal_tap *tap, uint64_t *ret_position,
                    uint64_t *ret_sequence);
void place_untap_walk(struct persist *persist, enum journal_tap_use use,
                      uint64_t *ret_position, uint64_t *ret_sequence);

/* Returns whether the log is on: there is a journal or a tap. */
bool place_is_logged(const struct persist *persist);
