/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decides whether a command may run: whether the request is valid, and whether
 * the state of the server permits it. Both also apply to commands that MULTI
 * queues. Writes the text of an error to worker->detail.
 */
#pragma once

#include "engine/request.h"

/* Checks the request: its name and arity, whether the client is authenticated,
 * and whether MULTI, subscriptions and MONITOR allow the command. words: how
 * many words the name has. */
MUST_CHECK enum err admit_request(struct request *req, unsigned words);

/* Checks the rights of the session's user, the slots of the keys (route.h), and
 * then the state of the server, in Redis's order: memory, disk, replicas, the
 * role, stale data, loading. ERR_AGAIN: the session has to wait, for the end of
 * CLIENT PAUSE or until notices have been delivered. A request that replays a
 * log (req->obey) is always admitted. Inside a section of the gate. */
MUST_CHECK enum err admit_now(const struct request *req);

/* Does what admit_now() does, but leaves the rights and the slots to the
 * caller. */
MUST_CHECK enum err admit_by_state(const struct request *req);
