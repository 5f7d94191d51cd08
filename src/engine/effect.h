/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How effects reach the journal. effect_open reserves space before the stripes
 * are locked, since that can fail. effect_add adds what commands did while
 * their stripes are locked. effect_close hands the effects over before the
 * stripes are unlocked, so that the journal has the order of execution. Nothing
 * between open and close can fail: every change is journaled.
 *
 * Each stripe remembers the log's position at its last change. A reply waits
 * for the highest position of the stripes that its command saw (worker->hold),
 * so that no client learns of a change that could still be lost.
 *
 * Only a primary removes expired keys. Each removal is a DEL in the log, before
 * the effect of the command that found the key.
 *
 * A silent worker, which executes another server's log, passes no effects on.
 * But it sets the positions of stripes, too, to the position of each command's
 * end in that log. So a copy of an entry says exactly which commands it
 * includes. The log is relayed later (journal_relay), so reads do not wait for
 * these positions.
 *
 * All of this happens inside a section of the gate or with the gate raised,
 * since the journal is switched on and off under the raised gate.
 */
#pragma once

#include "engine/lock_set.h"
#include "engine/run.h"

enum {
    /* The most that an effect needs beyond the words of its command: a filter's
     * creation (bloom/bloom_make.h) is the longest. */
    EFFECT_EXTRA_BYTES = 2048
};

/* Returns the most bytes that the effect of these words takes, if it creates no
 * filter. The effect for a deletable filter has a place for each item, and one
 * word more, PLACED (keyspace/redo.h). The effect for an ageing filter
 * (bloom/adds.h) has three words more: AT, a time, and ITEMS. So neither adds
 * more words than the command has, which is at least 3. */
static inline size_t
effect_words_bytes(const struct slice *argv, size_t argc)
{
    /* The most bytes of a place (keyspace/redo.h). Three places also cover AT,
     * a time of 20 digits, ITEMS, and 3 letters by which the name of the
     * effect's command may be longer: 30 bytes. */
    enum { PLACE_BYTES = 11 };

    return stage_effect_bytes(argv, argc) +
           argc * (STAGE_WORD_BYTES + PLACE_BYTES);
}

/* Returns whether effects are passed on: there is a journal, and the worker
 * does not execute another server's log. */
static inline bool
effect_is_on(const struct worker *worker)
{
    return worker->service->journal != NULL && !worker->silent;
}

/* Returns the most bytes that the effects of a command take: its own, and a DEL
 * for each key that it finds expired. Cannot overflow: the words are in memory
 * already. */
size_t effect_bytes(const struct command *command, const struct slice *argv,
                    size_t argc);

/* Returns the bytes that effect_delete takes for this name. */
size_t effect_delete_bytes(struct slice name);

/* Reserves space for effects of so many bytes in all; does nothing while the
 * journal is off. Fails with ERR_NOMEM; and with ERR_AGAIN if the journal's
 * queue is full: the session, if there is one, then waits for room. */
MUST_CHECK enum err effect_open(struct worker *worker, size_t bytes);

/* Reserves space, as effect_open does, for all effects of COUNT runs. */
MUST_CHECK enum err effect_open_runs(struct worker *worker,
                                     const struct run *runs, size_t count);

/* Counts the changes of a command (req->dirty > 0) and adds its effect. */
void effect_add(struct request *req);

/* Adds the removal of an expired or evicted key. */
void effect_delete(struct worker *worker, const struct key *key);

/* Hands over the effects that were added, as one transaction if txn, and gives
 * the set's stripes their new position. If none were added, notes the position
 * of what was read. Call it while the set is locked. last: the last word of the
 * executed command, from which a silent worker finds its place in the log. */
void effect_close_slow(struct worker *worker, const struct lock_set *set,
                       bool txn, const struct slice *last);
static inline void
effect_close(struct worker *worker, const struct lock_set *set, bool txn,
             const struct slice *last)
{
    if (worker->service->journal != NULL) {
        effect_close_slow(worker, set, txn, last);
    }
}

/* Does the same for a run. */
static inline void
effect_close_run(struct worker *worker, const struct lock_set *set,
                 const struct run *run)
{
    effect_close(worker, set, false,
                 &run_words(run, run->count - 1)[run->argc - 1]);
}

/* Does the same as effect_close, for one stripe. */
void effect_close_stripe(struct worker *worker, unsigned stripe);

/* Wakes the journal's writer if this worker has handed over effects since the
 * last call. Call it once in a turn of the loop, inside or outside the gate. */
void effect_kick(struct worker *worker);
