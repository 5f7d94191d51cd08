/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The handshake, the lines between groups and chunks, and acknowledgements.
 * Loop 0.
 */
#pragma once

#include "repl/replica_state.h"

/* Sends the first command over a new link. */
void replica_talk_begin(struct replica *replica, uint64_t now_ms);

/* Returns, for messages, which answer of the primary is due. */
const char *replica_talk_step(const struct replica *replica);
void replica_talk_line(struct replica *replica, struct slice line,
                       uint64_t now_ms);

/* Continues a step that waits for the owner. Call it in each tick. */
void replica_talk_look(struct replica *replica, uint64_t now_ms);

/* Sends our position, or 0 until a snapshot is in use. */
void replica_talk_acknowledge(struct replica *replica, uint64_t now_ms);

/* Begins to follow the primary's log from this place. */
void replica_talk_follow(struct replica *replica,
                         const struct replica_place *from, uint64_t key,
                         uint64_t now_ms);
