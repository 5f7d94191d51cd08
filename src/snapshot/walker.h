/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes full states: a thread beside the loops walks through the keys
 * (keyspace/walk.h) while commands go on, and writes one snapshot. It writes to
 * a temporary file, which it syncs and renames, and then syncs the directory.
 * Or it writes into a pipe, whose reader may take any time.
 *
 * B and E are the positions of the log at the begin and at the end of the walk.
 * The file has exactly the data at E:
 *
 * - Each record has P, the position of its stripe when it was copied. Each
 *   effect sets that position under the exclusive lock. So a copy under the
 *   shared lock has exactly what the log up to P says of its name. The loader
 *   skips effects up to P, and executes those behind it.
 * - Adds between P and E: their effect lists the items that were new, each of
 *   which raised the count by one. Lines that were copied later may have their
 *   bits already; so the loader sets bits and raises counts whatever is there.
 * - Adds and deletes of a deletable filter say what they did. Its lines are
 *   copied in pieces with a position each, and the loader changes a line only
 *   if its piece was copied before.
 * - DEL, expiry and times to live act on the copy as they did on the filter. A
 *   name that is missing in the file was missing at the walk, too.
 * - A create: the loader makes the key, unless the walk has met it since: then
 *   the P of its record is higher.
 * - RENAME, MOVE, COPY, RESET, MERGE: their target is marked and walked again;
 *   of two records the later counts, and E is only reached with no mark left.
 *   So at E there is a record behind the effect, or a later effect says why the
 *   name has gone.
 * - FLUSHALL, FLUSHDB, SWAPDB: keyspace/walk.h.
 * - RESTORE brings the whole filter with it.
 *
 * Loop 0 owns the walker. The thread only runs its job.
 */
#pragma once

#include "keyspace/keyspace.h"
#include "snapshot/snapshot_stamp.h"

#include <stdbool.h>

struct spool;
struct walk_part; /* keyspace/walk_part.h */
struct walker;

struct walker_job {
    struct snapshot_stamp begin; /* the place of B in the log */
    /* Nothing changes before the end: B is E, and there are no effects. The
     * caller has raised the gate, as loop 0, or nobody else has the data. */
    bool still;
    /* Write only these keys, but all effects: the loader picks the effects of
     * the part (replay/excerpt.h). NULL: write all keys. `part` must stay valid
     * until the end. */
    const struct walk_part *part;
    /* For a file: */
    int dir_fd;
    const char *dir; /* its path; ESTALE or ENOENT if the directory is no longer
                        there. NULL: not checked */
    const char *name; /* the final name, copied; <name>.tmp until then */
    /* For a pipe, to_pipe is set: the end to write to, which the walker closes.
     * EPIPE: the reader is gone. */
    bool to_pipe;
    int pipe_fd;
};

/* Starts the thread, which sleeps until there is a job; a failure ends the
 * process. The thread calls poke when loop 0 should look. */
struct walker *walker_new(struct keyspace *ks, struct spool *spool,
                          void (*poke)(void *ctx), void *ctx);
void walker_free(struct walker *walker); /* cancels the job, and waits */

/* Begins a job. Call it under the raised gate, with the spool's tap set (unless
 * `still`). */
void walker_start(struct walker *walker, const struct walker_job *job);

/* Writes a file on the calling thread, and returns when it is done. The job
 * must be `still`. Returns 0 or an errno value. */
int walker_write_here(struct walker *walker, const struct walker_job *job);

bool walker_is_running(struct walker *walker);

/* walker_is_through() returns whether the walk has come to its end; the thread
 * then sleeps until walker_end() or walker_go_on(). Meanwhile walker_is_even()
 * returns, under the raised gate, whether no filter is marked for another copy.
 */
bool walker_is_through(struct walker *walker);
bool walker_is_even(const struct walker *walker);

/* Returns whether commands mark filters faster than the walk copies them, or
 * marked one just before its end. Then no command may mark one (CMD_REMAKES),
 * so that the next rounds are the last. False when the walk has ended. */
bool walker_lags(const struct walker *walker);

/* walker_end() ends the walk at E, the present place of the log; the thread
 * writes the rest. The caller has raised the gate and removed the spool's tap.
 * walker_go_on() lets the walk copy what is marked. */
void walker_end(struct walker *walker, const struct snapshot_stamp *end);
void walker_go_on(struct walker *walker);

/* Returns true once, when the thread has ended, with the result: 0 or an errno
 * value, which is ECANCELED after walker_cancel. Does not wait. If walker_end
 * was not called, walker_drop must follow, under the raised gate. */
bool walker_reap(struct walker *walker, int *ret_error);
bool walker_has_walk(const struct walker *walker);
void walker_drop(struct walker *walker);

/* Makes the thread end soon. With a pipe this works only if the reader still
 * reads, or has gone. Any thread. */
void walker_cancel(struct walker *walker);

struct walker_figures {
    uint64_t bytes, keys, keys_total;
    uint64_t holds, rounds, spool_bytes; /* without a walk: of the last one */
};
void walker_get_figures(struct walker *walker,
                        struct walker_figures *ret_figures);
