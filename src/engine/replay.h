/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Repeats effects: RESP commands as the journal has them, executed by a worker
 * that has the keyspace for itself (no gate, no locks) and a session that
 * obeys (no limits, defaults, clock). For the start of the server, on whatever
 * thread that runs on, while nobody else touches the keyspace.
 */
#pragma once

#include "engine/service.h"

#include <stdbool.h>
#include <stddef.h>

struct replay;

struct replay *replay_new(struct service *service);
void replay_free(struct replay *replay);

/* For struct recover_replay: executes the commands of a group, which stays
 * selected to the database that it ends with. ctx is the replay. MULTI and
 * EXEC are no-ops, since nobody else is there. False and a reason if bytes are
 * no command, or one of them is neither a write nor SELECT, or failed; what
 * came before it was executed. */
bool replay_group(void *ctx, struct slice commands, char *ret_reason,
                  size_t reason_size);
