/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes groups of another server's log while clients are served: like
 * replay.h, but with the gate's sections and the stripes' locks, transactions
 * as one, and everybody told who listens. Nothing of it goes to the journal:
 * the group does, as it came (journal_relay). Loop 0, with its worker.
 */
#pragma once

#include "engine/service.h"

#include <stdbool.h>
#include <stddef.h>

struct apply;

/* worker: of loop 0. */
struct apply *apply_new(struct worker *worker);
void apply_free(struct apply *apply);

/* Whether a group has commands that need the whole world (FLUSHALL, SWAPDB). */
bool apply_needs_world(struct apply *apply, struct slice commands);

/* All commands of a group. The caller holds the gate for all of it, so that
 * neither a fork nor a change of the role comes in between, and the group is
 * relayed in the same breath: raised if apply_needs_world, else inside its
 * section; dispatch then takes the stripes' locks alone (worker->holds_gate).
 * Replay's rules: canonical RESP, writes and SELECT (and MULTI, EXEC, REPLCONF
 * HISTORY) only, no limits, no clock. False and a reason if something is none
 * of that or failed; what came before it was executed, so that the data is to
 * be fetched anew. apply_tell wakes those who listen, outside the gate. */
bool apply_group(struct apply *apply, struct slice commands, char *ret_reason,
                 size_t reason_size);
void apply_tell(struct apply *apply);
