/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Changes the links when the role or the history of our log changes. Loop 0.
 */
#pragma once

struct replication;

/* Compares the role with the one that the links follow, and changes the links
 * if they differ. */
void role_change_look(struct replication *r);

/* Passes the history of our log to the primary's side if it has changed: by a
 * change of role, or by a command in our primary's log. Outside the gate. */
void role_change_note_history(struct replication *r);
