/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sidecar mode: decides whether this server may execute a command, by the slots
 * of its keys, or which error redirects the client. The checks come in the same
 * order as in Redis Cluster. A command without keys is always local. Inside a
 * section of the gate, on the session's loop; a request that replays a log is
 * never checked.
 */
#pragma once

#include "engine/request.h"

static inline bool
route_is_on(const struct request *req)
{
    return __builtin_expect(req->service->cluster != NULL, 0) && !req->obey;
}

/* Checks the keys of a command, or of everything that EXEC will run. Fills
 * worker->detail for MOVED and ASK. ERR_AGAIN: the slot is being handed over,
 * and the session has to wait; after ROUTE_HOLD_MS the error is ERR_TRYAGAIN.
 */
enum { ROUTE_HOLD_MS = 250 };
MUST_CHECK enum err route_check(const struct request *req);

/* Returns whether route_check would return OK for this command, without side
 * effects. key: the first key of the command. */
bool route_allows(const struct request *req, const struct command *command,
                  const struct slice *argv, size_t argc, const struct key *key);

/* Counts a command that was refused with this error. */
void route_count(enum err err);

/* Ends the effect of ASKING, which is for the next command only, or for the
 * transaction that this command (MULTI) begins. */
void route_command_ends(const struct request *req);

/* Returns whether the error is a redirect or refusal of route_check, which EXEC
 * passes on as it is; ERR_REDIRECT of admission is among them. */
static inline bool
route_is_refusal(enum err err)
{
    return err >= ERR_CLUSTER_UNREAD && err <= ERR_CLUSTERDOWN_MISSING;
}
