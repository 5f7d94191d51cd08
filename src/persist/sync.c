/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The replicas' links read the pipe, and slow ones can make a snapshot last
 * very long. So snapshots for replicas take turns with the saves and rewrites
 * that are due, and are broken off at once when the journal fails.
 */
#include "persist/sync.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "persist/full_state.h"
#include "persist/persist_state.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void
persist_ask_sync(struct persist *persist, const struct slot_set *slots)
{
    CHECK(persist->log.tapped);
    persist->sync.wanted = true;
    persist->sync.limited = slots != NULL;
    if (slots != NULL) {
        persist->sync.wanted_slots = *slots;
    }
    persist->options.hooks.poke(persist->options.hooks.ctx);
}

void
persist_cancel_sync(struct persist *persist)
{
    persist->sync.wanted = false;
    if (persist->step == STEP_SYNC) {
        full_state_break_off(persist);
        sync_ended(persist, ECANCELED);
    }
}

/* Opens a pipe. Reading from ret_ends[0] never blocks. */
static int
open_pipe(int *ret_ends)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        int error = errno;

        file_close(ends[0]);
        file_close(ends[1]);
        return error;
    }
    ret_ends[0] = ends[0];
    ret_ends[1] = ends[1];
    return 0;
}

void
sync_begin(struct persist *persist)
{
    const struct persist_hooks *hooks = &persist->options.hooks;
    struct walker_job job = { .to_pipe = true };
    int ends[2] = { -1, -1 };
    int error = open_pipe(ends);

    CHECK(persist->step == STEP_NONE && persist->log.tapped &&
          !persist->sync.open);
    persist->sync.wanted = false;
    persist->sync.yields = true;
    persist->step_started_ns = clock_mono_ns();
    if (error != 0) {
        log_error("persist.sync", "failed to begin a snapshot for replicas",
                  "error=\"%s\"", strerror(error));
        hooks->sync_began(hooks->ctx, -1, error, 0, 0);
        return;
    }
    job.pipe_fd = ends[1];
    if (persist->sync.limited) {
        persist->sync.slots = persist->sync.wanted_slots;
        persist->sync.part =
            (struct walk_part){ .of = WALK_PART_SLOTS,
                                .slots = &persist->sync.slots };
        job.part = &persist->sync.part;
    }
    full_state_start(persist, &job);
    persist->step = STEP_SYNC;
    persist->sync.open = true;
    log_info("persist.sync", "began a snapshot for replicas", "position=%llu",
             (unsigned long long)job.begin.position);
    hooks->sync_began(hooks->ctx, ends[0], 0, job.begin.position,
                      job.begin.sequence);
}

void
sync_ended(struct persist *persist, int error)
{
    const struct persist_hooks *hooks = &persist->options.hooks;

    if (!persist->sync.open) {
        return;
    }
    persist->sync.open = false;
    log_info("persist.sync", "ended a snapshot for replicas", "error=\"%s\"",
             error != 0 ? strerror(error) : "");
    hooks->sync_ended(hooks->ctx, error);
}
