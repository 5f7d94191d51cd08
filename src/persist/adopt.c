/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Data of another server takes the place of ours. The disk then has data of
 * another log, and no position says which of the two is newer. So:
 *
 *   memory, at once    the journal ends, its file is left as it is
 *   <dbfilename>.new   a snapshot of the new data; once it has that name, it is
 *                      the state
 *   journal            its manifest is removed, then all its files
 *   <dbfilename>       .new is renamed to it
 *
 * A crash before the second line leaves the old state, complete and under its
 * own id: such a server has only missed something. A start that finds .new
 * first does the last two lines, and then looks for data; so it never sees
 * files of both states. Then a journal begins as if it had just been switched
 * on.
 *
 * Data of a third server may arrive at any time in between: it is counted, and
 * the snapshot notes which data it has.
 *
 * A replica that must drop its old data before the new data is there has no
 * state of any log meanwhile; that never reaches the disk (persist_suspend).
 */
#include "persist/adopt.h"

#include "base/file.h"
#include "base/log.h"
#include "base/metrics.h"
#include "journal/journal_tap.h"
#include "keyspace/exchange.h"
#include "persist/directory.h"
#include "persist/full_state.h"
#include "persist/journal_dir.h"
#include "persist/persist_state.h"
#include "persist/rewrite.h"
#include "persist/sync.h"
#include "snapshot/snapshot_read.h"

#include <errno.h>

/* ---- memory -------------------------------------------------------------- */

/* Stops writing to the files. A task cannot be stopped: its result is checked
 * when it has ended. */
static void
leave_files(struct persist *persist)
{
    struct journal_status status;

    if (walker_is_running(persist->walker)) {
        walker_cancel(persist->walker);
        persist->step = STEP_ENDING;
    }
    journal_get_status(persist->journal, &status);
    if (status.on) { /* one that is closing ends with journal_move */
        journal_turn_off(persist->journal, true);
    }
}

void
persist_adopt(struct persist *persist, const struct persist_arrival *arrival)
{
    struct keyspace *ks = persist->options.keyspace;
    const struct persist_hooks *hooks = &persist->options.hooks;

    CHECK(persist->log.tapped && !persist->sync.open);
    leave_files(persist);
    persist->suspended = false;
    if (arrival->fresh != NULL) {
        keyspace_exchange(ks, arrival->fresh);
    }
    /* Reads need not wait for any position of the old log. */
    keyspace_set_all_positions(ks, arrival->position);
    journal_move(persist->journal, arrival->position, arrival->sequence);
    history_begin(&persist->log.history, arrival->history);
    persist->log.unrecorded = false;
    metric_add(METRIC_CHANGES, 1); /* so that a save rule applies */
    persist->adopted.arrived++;
    persist->save.retry = (struct retry){ 0 };
    persist->rewrite_retry = (struct retry){ 0 };
    if (hooks->reloaded != NULL) {
        hooks->reloaded(hooks->ctx);
    }
    log_notice("persist.adopt",
               arrival->fresh != NULL
                   ? "took over the data of another server"
                   : "the data matches no position of the log now",
               "history=%s position=%llu sequence=%llu",
               persist->log.history.id, (unsigned long long)arrival->position,
               (unsigned long long)arrival->sequence);
    hooks->poke(hooks->ctx);
}

void
persist_suspend(struct persist *persist)
{
    persist->suspended = true;
    if (walker_has_walk(persist->walker)) { /* else all has been copied */
        full_state_break_off(persist);
        sync_ended(persist, ECANCELED);
    }
}

/* ---- the disk ------------------------------------------------------------ */

bool
adopt_is_pending(const struct persist *persist)
{
    return persist->adopted.arrived != persist->adopted.stored;
}

static bool
has_old_state(const struct persist *persist)
{
    return directory_has(persist->dir_fd, persist->snapshot_name) ||
           directory_has(persist->dir_fd, persist->arrival_name) ||
           (persist->journal_fd >= 0 &&
            directory_has(persist->journal_fd, MANIFEST_NAME));
}

/* A server that saves nothing need not store the new data, unless the directory
 * has an older state. */
bool
adopt_needs_disk(struct persist *persist, const struct persist_conf *conf)
{
    if (adopt_is_pending(persist) && conf->save.count == 0 &&
        !conf->appendonly &&
        (persist->lock_fd < 0 || !has_old_state(persist))) {
        persist->adopted.stored = persist->adopted.arrived;
    }
    return adopt_is_pending(persist);
}

const char *
adopt_snapshot_name(const struct persist *persist)
{
    return adopt_is_pending(persist) ? persist->arrival_name
                                     : persist->snapshot_name;
}

static int
replace(struct persist *persist)
{
    int error = journal_dir_clear(persist);

    if (error == 0) {
        error = file_rename(persist->dir_fd, persist->arrival_name,
                            persist->snapshot_name);
    }
    return error == 0 ? file_sync_dir(persist->dir_fd) : error;
}

static void
run_replace(void *arg)
{
    struct persist *persist = arg;

    persist->adopted.error = replace(persist);
}

void
adopt_begin(struct persist *persist)
{
    CHECK(persist->step == STEP_SAVE && adopt_is_pending(persist));
    persist->step = STEP_REPLACE;
    task_start(persist->task, run_replace, persist);
}

static void
note_stored(struct persist *persist)
{
    CHECK(persist->adopted.written >= persist->adopted.stored &&
          persist->adopted.written <= persist->adopted.arrived);
    persist->adopted.stored = persist->adopted.written;
    rewrite_start_over(persist);
    log_notice("persist.adopt", "replaced the data on the disk",
               "file=\"%s/%s\" pending=%d", persist->dir,
               persist->snapshot_name, adopt_is_pending(persist));
}

int
adopt_replaced(struct persist *persist)
{
    if (persist->adopted.error == 0) {
        note_stored(persist);
    }
    return persist->adopted.error;
}

int
adopt_here(struct persist *persist)
{
    int error = replace(persist);

    if (error == 0) {
        note_stored(persist);
    }
    return error;
}

/* ---- start --------------------------------------------------------------- */

static bool
refuse(const struct persist *persist, const char *what, const char *why)
{
    log_error(
        "persist.adopt", "cannot use the data of another server",
        "file=\"%s/%s\" step=\"%s\" error=\"%s\" next=\"to start from the "
        "data before it, move that file away\"",
        persist->dir, persist->arrival_name, what, why);
    return false;
}

bool
adopt_finish(struct persist *persist)
{
    struct snapshot_error damage = { 0 };
    struct snapshot_stamp stamp;
    int fd = -1;
    int error = file_open(persist->dir_fd, persist->arrival_name, &fd);
    bool good;

    if (error == ENOENT) {
        return true;
    }
    if (error != 0) {
        return refuse(persist, "open", strerror(error));
    }
    good = snapshot_read_stamp(fd, &stamp, &damage) == SNAPSHOT_OK;
    file_close(fd);
    if (!good) {
        persist->load.refused = true;
        return refuse(persist, "read its header", damage.text);
    }
    error = replace(persist);
    if (error != 0) {
        return refuse(persist, "put it in its place", strerror(error));
    }
    log_notice("persist.adopt", "finished replacing the data on the disk",
               "file=\"%s/%s\" history=%s position=%llu", persist->dir,
               persist->snapshot_name, stamp.history,
               (unsigned long long)stamp.position);
    return true;
}
