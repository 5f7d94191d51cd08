/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The part of the handshake in which a replica asks for the hash secrets that
 * it lacks (wire.h). A primary that gives no secret, or is too old to know
 * about secrets, is followed all the same: its filters may need none. Loop 0.
 */
#pragma once

#include "repl/replica_state.h"

/* Continue the requests: at the beginning of a link, after a line of the
 * primary, and in each tick. Return true if there is nothing more to ask on
 * this link. */
bool replica_secrets_begin(struct replica *replica, uint64_t now_ms);
bool replica_secrets_line(struct replica *replica, struct slice line,
                          uint64_t now_ms);
bool replica_secrets_look(struct replica *replica, uint64_t now_ms);
