/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A save child: forked from loop 0 under the raised gate, it closes all sockets
 * and locks that it inherited, writes one snapshot to a temporary name, syncs,
 * renames, syncs the directory and exits. Or it writes into a pipe, whose
 * reader takes as long as it likes. It dies with its parent, and ignores
 * signals that ask the parent to stop or to reload: a terminal or a service
 * manager sends those to the whole process group. Its progress is in memory
 * that both share.
 */
#pragma once

#include "keyspace/keyspace.h"
#include "persist/snapshot.h"

#include <stdbool.h>
#include <sys/types.h>

struct child;

struct child_job {
    const struct keyspace *keyspace;
    struct snapshot_stamp stamp;
    /* To a file: */
    int dir_fd;
    const char *dir;  /* its path: if the directory is no longer there, that is
                         ESTALE or ENOENT. NULL: not checked */
    const char *name; /* the final one; <name>.tmp meanwhile */
    /* or, if to_pipe, into this end of a pipe. The caller closes its own copy
     * as soon as the child runs: then the child's is the last one, and the
     * reader finds the end where the child ended. EPIPE: the reader is gone. */
    bool to_pipe;
    int pipe_fd;
};

/* Allocates memory for the child's writer and progress, kept between forks;
 * NULL if there is none. */
struct child *child_new(void);
void child_free(struct child *child); /* kills a child that runs, and waits */

/* Forks. Under the raised gate. Returns 0 or an errno value; *ret_us is how
 * long the fork took. */
int child_start(struct child *child, const struct child_job *job,
                uint64_t *ret_us);

/* Writes the same in this process, to a file, and blocks until it is done: for
 * a start, and where a fork is refused at the end. Returns 0 or an errno value.
 */
int child_write_here(struct child *child, const struct child_job *job);

bool child_is_running(const struct child *child);

/* Returns true once, when the child has ended, with the result: 0, an errno
 * value, or minus the number of the signal that ended it. Does not wait. */
bool child_reap(struct child *child, int *ret_error);

/* Explains such a result in words, for the log. */
enum { CHILD_TEXT_MAX = 96 };
const char *child_explain(int error, char *ret_text);

/* Asks the kernel to end the child, which runs until it is reaped: as long as
 * the disk lets it. */
void child_kill(struct child *child);

/* Waits for the end of a child that runs. Blocks. */
void child_wait(struct child *child);

/* Removes the temporary file of a child that was killed, possibly a large one.
 * Disk work: not on a loop. */
void child_remove_rest(const struct child *child);

struct child_figures {
    uint64_t bytes, keys, keys_total;
    uint64_t cow_bytes, cow_peak_bytes, cow_age_ms;
};
void child_get_figures(const struct child *child,
                       struct child_figures *ret_figures);
