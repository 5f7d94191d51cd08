/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The way of effects into the journal. Before stripes are locked room is made
 * for all that may be said (effect_open), since that can fail; what commands
 * did is added while their stripes are held, and handed over before they are
 * given back (effect_close), so that the journal has the order of execution.
 * Nothing can fail in between: what was changed is journaled.
 *
 * The other direction is told here, too: a stripe remembers how far the log
 * was at its last change, and who saw the stripe waits for that
 * (worker->hold), so that nobody tells what could still be lost.
 *
 * A key whose time is over is removed by the server that owns the data alone:
 * as a DEL in the same log, before what the command that met it says.
 *
 * A silent worker, which repeats another server's log, passes nothing on: its
 * changes count, and that is all.
 *
 * All of it inside a section of the gate, or with the gate raised: the journal
 * comes and goes under the raised gate.
 */
#pragma once

#include "engine/lock_set.h"
#include "engine/run.h"

enum {
    /* What an effect may need beyond the words that came: those of a creating
     * one (bloom/bloom_make.h), or of any other that is no longer. */
    EFFECT_EXTRA_BYTES = 2048
};

/* Whether effects are passed on: there is a journal, and the worker does not
 * repeat another server's log. */
static inline bool
effect_is_on(const struct worker *worker)
{
    return worker->service->journal != NULL && !worker->silent;
}

/* What the effects of these words take at most: the one of the command, and a
 * DEL for each key that it finds over. Does not overflow: the words lie in
 * memory already. */
size_t effect_bytes(const struct command *command, const struct slice *argv,
                    size_t argc);

/* What effect_delete takes for this name. */
size_t effect_delete_bytes(struct slice name);

/* Makes room for effects of so many bytes in all. ERR_AGAIN: the journal's
 * queue is full, the session is marked as parked, and the connection should
 * try again later (without a session: its owner); ERR_NOMEM. Nothing to do
 * while the journal is off. */
MUST_CHECK enum err effect_open(struct worker *worker, size_t bytes);

/* The same for all that a run may say. */
MUST_CHECK enum err effect_open_run(struct worker *worker,
                                    const struct run *run);

/* Counts and adds what a command did; dirty > 0. */
void effect_add(struct request *req);

/* Adds the removal of a key that no command asked for: its time is over, or
 * memory is short. */
void effect_delete(struct worker *worker, const struct key *key);

/* Hands over what was added (txn: as one piece) and sets the positions of the
 * set's stripes; or, if nothing was, notes what was read. Still under the
 * set's locks. */
void effect_close_on(struct worker *worker, const struct lock_set *set,
                     bool txn);
static inline void
effect_close(struct worker *worker, const struct lock_set *set, bool txn)
{
    if (effect_is_on(worker)) {
        effect_close_on(worker, set, txn);
    }
}

/* The same for one stripe. */
void effect_close_stripe(struct worker *worker, unsigned stripe);

/* Wakes the journal's writer if this worker gave it something since the last
 * call. Once a turn, outside the gate's section if you like. */
void effect_kick(struct worker *worker);
