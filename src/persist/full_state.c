/* SPDX-License-Identifier: BSD-3-Clause
 *
 * While the child runs, reads leave no mark in the entries: the kernel copies
 * each page that is written to.
 */
#include "persist/full_state.h"

#include "base/clock.h"
#include "keyspace/access.h"
#include "persist/persist_state.h"

struct child_job
full_state_job(const struct persist *persist, int dir_fd, const char *name,
               uint64_t position, uint64_t sequence)
{
    struct keyspace *ks = persist->options.keyspace;
    struct child_job job = {
        .keyspace = ks,
        .stamp = { .position = position,
                   .sequence = sequence,
                   .created_ms = clock_wall_ms(),
                   .keys = keyspace_count_keys(ks) },
        .dir_fd = dir_fd,
        .dir = dir_fd == persist->dir_fd ? persist->dir : persist->journal_dir,
        .name = name,
    };

    memcpy(job.stamp.history, persist->log.history.id,
           sizeof(job.stamp.history));
    return job;
}

int
full_state_start(struct persist *persist, const struct child_job *job)
{
    int error;

    persist->info.fork_us = 0;
    error = child_start(persist->child, job, &persist->info.fork_us);
    persist->info.forks++;
    if (error == 0) {
        access_pause(keyspace_access(persist->options.keyspace), true);
    }
    return error;
}

bool
full_state_has_ended(struct persist *persist, int *ret_error)
{
    if (!child_reap(persist->child, ret_error)) {
        return false;
    }
    access_pause(keyspace_access(persist->options.keyspace), false);
    return true;
}

void
full_state_break_off(struct persist *persist)
{
    if (persist->step == STEP_BASE) { /* again, later */
        (void)requests_ask(&persist->requests[PERSIST_REWRITE]);
    }
    child_kill(persist->child);
    persist->step = STEP_ENDING;
}

void
full_state_stop(struct persist *persist)
{
    full_state_break_off(persist);
    child_wait(persist->child);
    access_pause(keyspace_access(persist->options.keyspace), false);
    persist->step = STEP_NONE;
}
