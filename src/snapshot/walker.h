/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes full states: a thread beside the loops walks through the keys
 * (keyspace/walk.h) while commands go on, and writes one snapshot. To a file
 * means: to a temporary name, then it syncs, renames and syncs the directory.
 * Or it writes into a pipe, whose reader takes as long as it likes.
 *
 * The file is complete at its end E, and exact:
 *
 * - Let P be the position of a record. Its stripe's position is set under the
 *   exclusive lock with every effect, so under the shared lock the copy has
 *   exactly what the log says up to P of its name. Effects up to P are skipped
 *   when the file is loaded, those behind it are executed.
 * - Adds (P, E]: an effect of adds lists the items that were new, and raised
 *   the count by one each. Lines that were copied later may have their bits
 *   already; so the loader sets bits and raises counts whatever is there.
 * - Adds and deletes of a deletable filter say what they did. Its lines are
 *   copied in pieces with a position each, and the loader changes a line only
 *   if its piece is from before.
 * - DEL, expiry and times to live: they act on the copy as they did on the
 *   filter. A name that is missing was not there at the walk either.
 * - A create (P is none): the loader makes it. If the walk met it, P says so.
 * - RENAME, MOVE, COPY, RESET, MERGE: their target is marked and walked again;
 *   of two records the later counts, and E is only reached with no mark left.
 *   So at E there is a record behind the effect, or a later effect says why the
 *   name has gone.
 * - FLUSHALL, FLUSHDB, SWAPDB: keyspace/walk.h.
 * - RESTORE brings the whole filter with it.
 *
 * Loop 0 owns it, but for what the thread does.
 */
#pragma once

#include "keyspace/keyspace.h"
#include "snapshot/snapshot_stamp.h"

#include <stdbool.h>

struct spool;
struct walk_part; /* keyspace/walk_part.h */
struct walker;

struct walker_job {
    struct snapshot_stamp begin; /* B */
    /* Nothing changes before the end: B is E, and there are no effects. The
     * caller has raised the gate, as loop 0, or nobody else has the data. */
    bool still;
    /* Only these keys, with all effects: whoever loads it picks those of the
     * part (replay/excerpt.h). NULL: all keys. Used until the end. */
    const struct walk_part *part;
    /* To a file: */
    int dir_fd;
    const char *dir;  /* its path: if the directory is no longer there, that is
                         ESTALE or ENOENT. NULL: not checked */
    const char *name; /* the final one; <name>.tmp meanwhile. Copied */
    /* or, if to_pipe, into this end of a pipe, which the walker closes. EPIPE:
     * the reader is gone. */
    bool to_pipe;
    int pipe_fd;
};

/* Starts the thread (CHECKed), which sleeps until there is a job. poke: called
 * by the thread when loop 0 should look. */
struct walker *walker_new(struct keyspace *ks, struct spool *spool,
                          void (*poke)(void *ctx), void *ctx);
void walker_free(struct walker *walker); /* cancels, and waits */

/* Begins. Under the raised gate, with the spool's tap set (unless `still`). */
void walker_start(struct walker *walker, const struct walker_job *job);

/* Writes the same on this thread, to a file, and blocks until it is done; the
 * job is `still`. Returns 0 or an errno value. */
int walker_write_here(struct walker *walker, const struct walker_job *job);

bool walker_is_running(struct walker *walker);

/* Whether the walk has come to its end: it waits for walker_end or
 * walker_go_on. Then, under the raised gate, whether nothing is marked. */
bool walker_is_through(struct walker *walker);
bool walker_is_even(const struct walker *walker);

/* Whether commands mark filters faster than the walk copies them, or marked one
 * before the end: from now on none may mark (CMD_REMAKES), so that the next
 * rounds are the last ones. False when the walk has ended. */
bool walker_lags(const struct walker *walker);

/* Ends the walk: E is the present place of the log, the spool's tap was
 * removed, and all is under the raised gate. The thread writes the rest. Or it
 * has to go on, since something is marked. */
void walker_end(struct walker *walker, const struct snapshot_stamp *end);
void walker_go_on(struct walker *walker);

/* Returns true once, when the thread has ended, with the result: 0 or an errno
 * value: ECANCELED after walker_cancel. Does not wait. If walker_end was not
 * called, walker_drop must follow, under the raised gate. */
bool walker_reap(struct walker *walker, int *ret_error);
bool walker_has_walk(const struct walker *walker);
void walker_drop(struct walker *walker);

/* Lets the thread end soon; a pipe's reader has gone, or still reads. Any
 * thread. */
void walker_cancel(struct walker *walker);

struct walker_figures {
    uint64_t bytes, keys, keys_total;
    uint64_t holds, rounds, spool_bytes; /* of the last one, too */
};
void walker_get_figures(struct walker *walker,
                        struct walker_figures *ret_figures);
