/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes groups of the primary's log while clients are served. Unlike replay,
 * it uses the gate and the stripes' locks, executes transactions as one, and
 * produces notices. It records no effects: the group goes to the journal as it
 * came (journal_relay). Loop 0, with a worker of its own.
 */
#pragma once

#include "engine/service.h"

#include <stdbool.h>
#include <stddef.h>

struct apply;

/* Makes the executor. worker: that of loop 0. */
struct apply *apply_new(struct worker *worker);
void apply_free(struct apply *apply);

/* Returns whether a group has commands that need the raised gate (FLUSHALL,
 * SWAPDB). */
bool apply_needs_world(struct apply *apply, struct slice commands);

/* Does what pages_clear() does (pages.h), if the group of the last call of
 * apply_needs_world() is long; else returns true. Call it under the conditions
 * of apply_group. */
bool apply_clears(struct apply *apply, struct slice commands,
                  uint64_t sequence);

/* Executes a group, with the rules of obey_group. The caller is inside a
 * section of the gate, or has raised it if apply_needs_world() is true. It
 * stays there for the group and its relay, so that neither the end of a walk
 * nor a change of the role comes between them. Dispatch then takes only the
 * stripes' locks (worker->holds_gate). position: where the group begins in the
 * log. If it returns false, the commands before the failed one were executed,
 * so the data must be fetched anew. apply_wake wakes the loops that have
 * notices, outside the gate. */
bool apply_group(struct apply *apply, struct slice commands, uint64_t position,
                 char *ret_reason, size_t reason_size);
void apply_wake(struct apply *apply);
