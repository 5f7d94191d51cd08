/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The primary's side of replication: it knows the replicas, the position of
 * each, and which of them need a snapshot. A state machine of loop 0 without
 * I/O or a clock of its own: the owner reports each event with its time, and
 * hooks carry out the decisions at once. The simulator of tests/unit/repl links
 * this same object.
 *
 * All replicas that wait for a full synchronization share one snapshot
 * (primary_sync.h). The primary never waits for a replica: it drops one whose
 * unsent output exceeds the limits.
 */
#pragma once

#include "repl/backlog.h"
#include "repl/primary_hooks.h"

struct primary;

struct primary *primary_new(struct backlog *backlog,
                            const struct primary_hooks *hooks);
void primary_free(struct primary *primary);
void primary_set_limits(struct primary *primary,
                        const struct primary_limits *limits);

/* Sets the history that the backlog belongs to, and the key of the seals. A new
 * history drops no replica, since the log announces it; a new key drops all
 * replicas that receive the log or a snapshot. */
void primary_set_history(struct primary *primary, const struct history *history,
                         uint64_t key);

/* Sets the histories that this server wrote as primary, and the position at
 * which each ended here when the server started. A replica with a higher
 * position in one of them has changes that are lost here, and that WAIT may
 * have confirmed to clients. Once such a replica has come, no replica gets a
 * snapshot, because it would delete these changes there as well. Another call
 * ends that state. With count 0, the data of this server counts as the valid
 * one, whatever the replicas have. */
void primary_set_ended(struct primary *primary,
                       const struct history_past *ended, size_t count);

/* Returns whether a replica has changes that are lost here. */
bool primary_is_behind(const struct primary *primary);

/* Adds a replica that asks to follow, and drops an older link with the same run
 * id. Answers +CONTINUE at once, or +FULLRESYNC later. False: the replica was
 * refused; close the link when the error reply has been sent. */
bool primary_attach(struct primary *primary, const struct primary_hello *hello,
                    uint64_t now_ms);
void primary_detached(struct primary *primary, uint64_t id);

/* Handles an acknowledgement. Ignores unknown ids. Drops the replica if the
 * position is lower than its last one, or higher than the end of the log that
 * it was sent. Until a replica has loaded its snapshot, any position only shows
 * that it is alive. */
void primary_acked(struct primary *primary, uint64_t id, uint64_t position,
                   uint64_t synced, uint64_t now_ms);

/* Continues sending, after the socket has accepted all unsent bytes. */
void primary_drained(struct primary *primary, uint64_t id, uint64_t now_ms);

/* Sends the sealed groups of the log up to the position `released` (UINT64_MAX:
 * all of them), and trims the backlog. Each replica gets at most 1 MiB a call,
 * so that the loop is not blocked for long. Returns true if a replica could get
 * more: then call it again in the next turn of the loop. */
bool primary_stream(struct primary *primary, uint64_t released,
                    uint64_t now_ms);

/* Says which slots of a cluster this server holds, as a text, and at which
 * position of the log the text becomes true. Each replica that wants to know
 * gets the text, between two groups, as soon as it was sent the log up to this
 * position; later replicas, too. Takes over the text, and leaves *text empty.
 */
void primary_tell(struct primary *primary, struct buf *text, uint64_t position,
                  uint64_t now_ms);

/* Widens `ask` so that it includes `more`. */
void primary_ask_add(struct primary_ask *ask, struct primary_ask more);

/* Asks the replicas that follow for an acknowledgement. Each request is delayed
 * until the replica was sent the log up to the asked position: an earlier
 * acknowledgement would not help the client. */
void primary_ask_acks(struct primary *primary, struct primary_ask ask);

/* Returns whether a request for an acknowledgement is delayed: then
 * primary_stream is urgent. */
bool primary_owes_ask(const struct primary *primary);

/* Starts snapshots, sends pings, and checks time-outs and limits. Call it about
 * every 100 ms. */
void primary_tick(struct primary *primary, uint64_t now_ms);

void primary_drop_all(struct primary *primary, const char *reason);
/* Drops one replica. False: there is no replica with this id. */
bool primary_drop(struct primary *primary, uint64_t id, const char *reason);

/* Fills the counts and the backlog's figures (except backlog_active) and at
 * most `max` replicas, in order of arrival. Returns how many replicas there
 * are. */
size_t primary_describe(const struct primary *primary,
                        struct status_figures *ret_figures,
                        struct status_replica *ret_replicas, size_t max);

/* Returns the highest position that a replica has acknowledged in the present
 * history, whether or not this replica is still there; 0: none has acknowledged
 * one. */
uint64_t primary_furthest(const struct primary *primary);
size_t primary_replicas(const struct primary *primary);
