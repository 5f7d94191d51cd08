/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MULTI, EXEC and WATCH. A session has a txn while it is in MULTI or watches
 * keys. Queued commands own copies of their arguments. EXEC takes the stripes
 * of all its keys and of all watched ones in order, compares the watched
 * versions, and runs; nothing is registered across threads.
 */
#pragma once

#include "engine/request.h"

/* Between MULTI and EXEC. */
bool txn_is_open(const struct session *session);

/* True if this command is queued now rather than run. */
bool txn_takes(const struct session *session, const struct command *command);

/* Queues and replies +QUEUED. Fails with ERR_MULTI_QUEUE, ERR_NOMEM. */
MUST_CHECK enum err txn_queue(struct request *req);

/* A command was refused: EXEC will be, too. */
void txn_refused(struct session *session);

/* The union of the flags of what is queued, and those that all of it has. */
uint32_t txn_flags(const struct session *session);
uint32_t txn_common_flags(const struct session *session);

/* EXEC itself was refused: ends the transaction and replies "EXECABORT
 * Transaction discarded because of: <text>", the prefix of err before it
 * unless that is ERR. */
void txn_abort(struct request *req, enum err err, const char *text);

/* Forgets queue and watches: EXEC, DISCARD, RESET, the end of a session. */
void txn_end(struct session *session);
