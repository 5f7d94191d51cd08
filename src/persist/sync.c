/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The replicas' links read the pipe, and slow ones can make a snapshot last
 * very long. So it has a walk of its own, and saves and rewrites go on
 * meanwhile. It is broken off at once when the journal fails, unless it is for
 * a server that takes over slots.
 */
#include "persist/sync.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "keyspace/gate.h"
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
    sync_break_off(persist);
}

bool
sync_is_running(const struct persist *persist)
{
    return walker_is_running(persist->synced.walker);
}

/* Calls the hook for the end of the snapshot, if one had begun. */
static void
call_ended(struct persist *persist, int error)
{
    const struct persist_sync_hooks *hooks = &persist->options.sync;

    if (!persist->sync.open) {
        return;
    }
    persist->sync.open = false;
    log_info("persist.sync", "ended a snapshot for replicas", "error=\"%s\"",
             error != 0 ? strerror(error) : "");
    hooks->ended(hooks->ctx, error);
}

void
sync_break_off(struct persist *persist)
{
    if (sync_is_running(persist) && !persist->sync.ending) {
        full_state_break_off(&persist->synced);
        call_ended(persist, ECANCELED);
    }
}

void
sync_reap(struct persist *persist)
{
    int error;

    if (full_state_has_ended(&persist->synced, &error)) {
        persist->sync.ending = false;
        call_ended(persist, error);
    }
}

void
sync_end_walk(struct persist *persist)
{
    const struct persist_sync_hooks *hooks = &persist->options.sync;
    uint64_t position;
    uint64_t sequence;

    if (persist->sync.ending || !full_state_is_through(&persist->synced)) {
        return;
    }
    gate_raise(persist->gate, 0);
    if (full_state_end(&persist->synced, &position, &sequence)) {
        hooks->reached(hooks->ctx, position, sequence);
    }
    gate_lower(persist->gate, 0);
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
    const struct persist_sync_hooks *hooks = &persist->options.sync;
    struct walker_job job = { .to_pipe = true };
    int ends[2] = { -1, -1 };
    int error = open_pipe(ends);

    CHECK(!sync_is_running(persist) && persist->log.tapped &&
          !persist->sync.open);
    persist->sync.wanted = false;
    persist->sync.started_ns = clock_mono_ns();
    if (error != 0) {
        log_error("persist.sync", "failed to begin a snapshot for replicas",
                  "error=\"%s\"", strerror(error));
        hooks->began(hooks->ctx, -1, error, 0, 0);
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
    full_state_start(&persist->synced, &job);
    persist->sync.open = true;
    log_info("persist.sync", "began a snapshot for replicas", "position=%llu",
             (unsigned long long)job.begin.position);
    hooks->began(hooks->ctx, ends[0], 0, job.begin.position,
                 job.begin.sequence);
}
