/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One replica, as the primary's side sees it. Loop 0.
 *
 * Where no comment says otherwise, a function that returns bool returns false
 * if it dropped the replica. The peer is freed then. Loops over all replicas
 * run from the last to the first, since the replicas behind a dropped one move
 * up.
 */
#pragma once

#include "repl/primary_state.h"
#include "repl/wire.h"

struct peer *peer_find(const struct primary *primary, uint64_t id);

/* ---- removal ------------------------------------------------------------- */

/* Removes a replica whose link is closed already. */
void peer_forget(struct primary *primary, struct peer *peer);
void peer_drop(struct primary *primary, struct peer *peer, const char *reason);
void peer_drop_phase(struct primary *primary, enum phase phase,
                     const char *reason);
void peer_drop_all(struct primary *primary, const char *reason);

/* Drops all replicas if the backlog is broken. Returns whether it is. */
bool peer_drop_if_broken(struct primary *primary);

/* ---- sending ------------------------------------------------------------- */

bool peer_send(struct primary *primary, struct peer *peer, struct slice bytes);
/* Sends bytes and notes the time, which delays the next ping. */
bool peer_send_line(struct primary *primary, struct peer *peer,
                    struct slice line, uint64_t now_ms);
bool peer_answer(struct primary *primary, struct peer *peer,
                 const struct wire_answer *answer, uint64_t now_ms);

/* Sends the log as far as it is released and the link has room. A server that
 * takes over slots also gets the part that is not released. Sets *more if the
 * replica could take more than one call sends. */
bool peer_push(struct primary *primary, struct peer *peer, uint64_t now_ms,
               bool *more);
/* Sends GETACK if one is due and the replica was sent the asked position. */
bool peer_get_ack(struct primary *primary, struct peer *peer);
/* Sends the text that says which slots of a cluster this server holds. Does not
 * send it if the replica has it already, was not sent the data yet, or does not
 * want it. */
bool peer_tell(struct primary *primary, struct peer *peer, uint64_t now_ms);
bool peer_ping(struct primary *primary, struct peer *peer, uint64_t now_ms);

/* ---- limits and time-outs ------------------------------------------------ */

bool peer_check_limits(struct primary *primary, struct peer *peer,
                       uint64_t now_ms);
void peer_note_taken(struct primary *primary, struct peer *peer,
                     uint64_t now_ms);
bool peer_check_time(struct primary *primary, struct peer *peer,
                     uint64_t now_ms);
