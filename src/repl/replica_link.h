/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Begins and ends the replica's link, and decides when to connect again. Loop
 * 0.
 */
#pragma once

#include "repl/replica_state.h"

/* Sets the reason why there is no link, for the log and INFO. The text may
 * contain words of the primary, so control characters are replaced. */
__attribute__((format(printf, 2, 3))) void
replica_link_explain(struct replica *replica, const char *format, ...);

void replica_link_enter(struct replica *replica, enum replica_stage stage,
                        uint64_t now_ms);
void replica_link_dial(struct replica *replica, uint64_t now_ms);
void replica_link_pause(struct replica *replica);

/* Sends the bytes in replica->out. False: that failed, and the link was closed.
 */
bool replica_link_flush(struct replica *replica, uint64_t now_ms);

/* Enters a stage, and sends the primary the command that begins it. */
void replica_link_say(struct replica *replica, enum replica_stage stage,
                      const struct slice *argv, size_t argc, uint64_t now_ms);

/* Closes the link without connecting again. */
void replica_link_drop(struct replica *replica);

/* Closes the link for the reason set by replica_link_explain, and connects
 * again, at once or later. */
void replica_link_lose(struct replica *replica, uint64_t now_ms);

/* Loses the link because the snapshot cannot be loaded: connects again after a
 * pause that grows, and tells the primary why. */
void replica_link_refuse(struct replica *replica, uint64_t now_ms);

/* Loses the link because the primary's stream does not fit our data: the next
 * attempt asks for a snapshot. */
void replica_link_doubt(struct replica *replica, uint64_t now_ms);

/* Loses the link because the stream cannot be read. */
void replica_link_bad(struct replica *replica, const char *why,
                      uint64_t now_ms);
