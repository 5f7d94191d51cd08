/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the data to the disk (not with NOSAVE) and reads it back, on loop 0
 * and under the raised gate, so that clients only see the data from before or
 * after it.
 */
#include "persist/reload.h"

#include "base/clock.h"
#include "base/log.h"
#include "keyspace/databases.h"
#include "keyspace/gate.h"
#include "keyspace/reclaim.h"
#include "persist/persist_state.h"
#include "persist/place.h"
#include "persist/save.h"

#include <stdlib.h>
#include <unistd.h>

enum { RECLAIM_US = 10 * 1000 };

bool
reload_is_due(const struct persist *persist)
{
    return requests_are_due(&persist->requests[PERSIST_RELOAD]) ||
           requests_are_due(&persist->requests[PERSIST_RELOAD_NOSAVE]);
}

static bool
save(struct persist *persist)
{
    int error;

    persist->step_started_ns = clock_mono_ns();
    requests_begin(&persist->requests[PERSIST_SAVE]);
    error = save_here(persist);
    save_ended(persist, error);
    return error == 0;
}

static void
drop_all(struct persist *persist)
{
    struct keyspace *ks = persist->options.keyspace;

    keyspace_flush_all(ks);
    while (keyspace_reclaim(ks, 0, clock_wall_ms(), RECLAIM_US)) {
    }
    keyspace_wait_freed(ks);
}

/* Loads the snapshot. Under the raised gate. If it fails after everything was
 * dropped, the server must stop: the data is on the disk, and neither clients
 * nor a later save may use half-loaded data. */
static bool
load(struct persist *persist)
{
    struct recover_options options = {
        .dir_fd = persist->dir_fd,
        .journal_fd = -1,
        .snapshot_name = persist->snapshot_name,
        .dir = persist->dir,
        .journal_dir = persist->journal_dir,
        .keyspace = persist->options.keyspace,
        .env = &persist->load.env,
        .completion = persist->options.completion,
    };
    char reason[PERSIST_REASON_MAX];

    if (!recover_snapshot(&options, true, reason, sizeof(reason))) {
        log_error("persist.reload", "did not reload", "reason=\"%s\"", reason);
        return false;
    }
    drop_all(persist);
    if (!recover_snapshot(&options, false, reason, sizeof(reason))) {
        log_error(
            "persist.reload",
            "ends: the data was dropped, and loading it failed",
            "reason=\"%s\" next=\"start the server again: it loads the data\"",
            reason);
        _exit(EXIT_FAILURE);
    }
    return true;
}

void
reload_fail(struct persist *persist)
{
    for (int i = PERSIST_RELOAD; i <= PERSIST_RELOAD_NOSAVE; i++) {
        if (requests_are_due(&persist->requests[i])) {
            requests_begin(&persist->requests[i]);
            requests_settle(&persist->requests[i], false);
        }
    }
}

void
reload_run(struct persist *persist)
{
    bool keeps = requests_are_due(&persist->requests[PERSIST_RELOAD_NOSAVE]);
    struct requests *requests =
        &persist->requests[keeps ? PERSIST_RELOAD_NOSAVE : PERSIST_RELOAD];
    uint64_t start_ns = clock_mono_ns();
    bool done;

    if (persist->suspended) {
        log_error("persist.reload", "did not reload",
                  "reason=\"the data was dropped for the primary's, which has "
                  "not arrived\"");
        reload_fail(persist);
        return;
    }
    requests_begin(requests);
    gate_raise(persist->gate, 0);
    /* The journal may have been switched on since the request. */
    done = (keeps ? !persist->conf.appendonly : save(persist)) && load(persist);
    if (done && keeps) {
        place_restart(persist);
    }
    if (done && persist->options.hooks.reloaded != NULL) {
        persist->options.hooks.reloaded(persist->options.hooks.ctx);
    }
    gate_lower(persist->gate, 0);
    if (done) {
        log_notice(
            "persist.reload", "reloaded", "saved=%d ms=%llu", !keeps,
            (unsigned long long)((clock_mono_ns() - start_ns) / 1000000));
    }
    requests_settle(requests, done);
}
