/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Data of another server replaces ours. The disk then has data of another log,
 * and positions do not tell which of the two is newer. So:
 *
 *   <dbfilename>.arriving   the new data, as it arrives, and synced
 *   memory, at once    the journal ends, its file is left as it is; from now on
 *                      nothing behind this place of the log is released
 *   <dbfilename>.new   the same file, renamed; from then on it is the state
 *   journal            its manifest is removed, then all its files
 *   <dbfilename>       .new is renamed to it
 *   journal            the snapshot, by a second name, is its new base;
 *                      what was held is written to its increment, and released
 *
 * A crash before the third line leaves the old state, complete and with its own
 * history id. It lacks the new data, but the server has acknowledged no change
 * of the new data. A start that finds .new first does the next two lines, and
 * then looks for data. So it never loads files of both states.
 *
 * If the file could not be written, or there is none (our own data stays, but
 * belongs to no position of the log), a walk writes a snapshot instead, and
 * nothing is released before its end. If that fails, too, it is tried again.
 *
 * Data of a third server may arrive at any time in between. So the arrivals are
 * counted, and struct persist_adopted notes which of them a file has.
 *
 * A replica that must drop its old data before the new data has arrived has no
 * complete data meanwhile. That state is never written to the disk
 * (persist_suspend).
 */
#include "persist/adopt.h"

#include "base/file.h"
#include "base/log.h"
#include "base/metrics.h"
#include "journal/journal_tap.h"
#include "keyspace/exchange.h"
#include "persist/directory.h"
#include "persist/full_state.h"
#include "persist/incoming.h"
#include "persist/journal_dir.h"
#include "persist/persist_state.h"
#include "persist/place.h"
#include "persist/rewrite.h"
#include "persist/sync.h"
#include "snapshot/snapshot_read.h"

#include <errno.h>

/* Notes that the file could not be stored. Data that arrived later is not
 * affected. */
static void
note_failure(struct persist *persist, const char *what, int error)
{
    struct journal_status status;

    persist->adopted.failed = true;
    log_error("persist.adopt", "failed to store the data of another server",
              "step=\"%s\" error=\"%s\" next=\"writes a snapshot of it\"", what,
              strerror(error));
    journal_get_status(persist->journal, &status);
    if (status.holding) {
        journal_lose(persist->journal, error);
    }
    persist->options.hooks.moved(persist->options.hooks.ctx);
}

/* ---- what arrives -------------------------------------------------------- */

static bool
has_old_state(const struct persist *persist)
{
    return directory_has(persist->dir_fd, persist->snapshot_name) ||
           directory_has(persist->dir_fd, persist->arrival_name) ||
           (persist->journal_fd >= 0 &&
            directory_has(persist->journal_fd, MANIFEST_NAME));
}

/* A server that saves nothing need not store new data, unless the directory has
 * an older state. */
static bool
is_stored_at_all(const struct persist *persist, const struct persist_conf *conf)
{
    return conf->save.count > 0 || conf->appendonly ||
           (persist->lock_fd >= 0 && has_old_state(persist));
}

struct transfer_copy
persist_receive(struct persist *persist)
{
    struct transfer_copy none = { 0 };
    struct persist_conf conf;

    pthread_mutex_lock(&persist->mutex);
    conf = persist->conf;
    pthread_mutex_unlock(&persist->mutex);
    incoming_cancel(persist->incoming);
    if (adopt_is_pending(persist) || persist->presence.lost_error != 0 ||
        !is_stored_at_all(persist, &conf) ||
        !incoming_begin(persist->incoming, persist->dir,
                        persist->incoming_name)) {
        return none;
    }
    return incoming_copy(persist->incoming);
}

bool
persist_has_received(const struct persist *persist)
{
    int error;

    return incoming_state(persist->incoming, &error) != INCOMING_RUNS;
}

void
persist_refuse(struct persist *persist)
{
    if (persist->incoming != NULL) { /* it is NULL when the server ends */
        incoming_cancel(persist->incoming);
    }
}

/* ---- memory -------------------------------------------------------------- */

/* Stops writing to the files. A task cannot be stopped: its result is checked
 * when it has ended. */
static void
leave_files(struct persist *persist)
{
    if (walker_is_running(persist->own.walker)) {
        walker_cancel(persist->own.walker);
        persist->step = STEP_ENDING;
    }
    /* This snapshot, for replicas, is being broken off already. */
    walker_cancel(persist->synced.walker);
}

/* Lets the log continue from the place of the arrival. With a journal, nothing
 * after that place is released until the disk has everything before it. */
static void
move_log(struct persist *persist, const struct persist_arrival *arrival)
{
    struct journal *journal = persist->journal;
    struct journal_status status;

    if (persist->conf.appendonly) {
        journal_hold(journal, arrival->position, arrival->sequence);
        return;
    }
    journal_get_status(journal, &status);
    if (status.on) { /* journal_move ends a journal that is closing */
        journal_turn_off(journal, true);
    }
    journal_move(journal, arrival->position, arrival->sequence);
}

/* Takes over the file, if the data came through persist_receive. */
static void
take_file(struct persist *persist, const struct persist_arrival *arrival)
{
    struct persist_adopted *adopted = &persist->adopted;
    enum incoming_state state;
    int error;

    adopted->has_file = adopted->failed = false;
    if (!arrival->received) {
        return;
    }
    state = incoming_state(persist->incoming, &error);
    if (state == INCOMING_READY) {
        adopted->has_file = true;
        adopted->position = arrival->position;
        adopted->sequence = arrival->sequence;
        adopted->changes = metric_sum(METRIC_CHANGES);
        adopted->point = place_point(persist);
    } else if (state == INCOMING_FAILED) {
        note_failure(persist, "write what arrives", error);
    }
    if (state == INCOMING_READY || state == INCOMING_FAILED) {
        incoming_forget(persist->incoming);
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
    move_log(persist, arrival);
    history_begin(&persist->log.history, arrival->history);
    persist->log.unrecorded = false;
    metric_add(METRIC_CHANGES, 1); /* so that the option `save` applies */
    persist->adopted.arrived++;
    take_file(persist, arrival);
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
    if (walker_has_walk(persist->own.walker)) { /* without a walk, everything is
                                                   copied already */
        full_state_break_off(&persist->own);
    }
    if (walker_has_walk(persist->synced.walker)) {
        sync_break_off(persist);
    }
}

/* ---- the disk ------------------------------------------------------------ */

bool
adopt_is_pending(const struct persist *persist)
{
    return persist->adopted.arrived != persist->adopted.stored;
}

bool
adopt_needs_disk(struct persist *persist, const struct persist_conf *conf)
{
    if (adopt_is_pending(persist) && !is_stored_at_all(persist, conf)) {
        persist->adopted.stored = persist->adopted.arrived;
        persist->options.hooks.moved(persist->options.hooks.ctx);
    }
    return adopt_is_pending(persist);
}

bool
persist_has_adopted(const struct persist *persist)
{
    struct journal_status status;

    journal_get_status(persist->journal, &status);
    return persist->adopted.failed ||
           (!adopt_is_pending(persist) && !status.holding);
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

/* Gives the file its name. After that, a start finds the new data. */
static int
name_file(const struct persist *persist)
{
    int error = file_rename(persist->dir_fd, persist->incoming_name,
                            persist->arrival_name);

    if (error == 0) {
        error = file_sync_dir(persist->dir_fd);
    } else {
        (void)!file_unlink(persist->dir_fd, persist->incoming_name);
    }
    return error == 0 ? file_is_dir_at(persist->dir_fd, persist->dir) : error;
}

static void
run_replace(void *arg)
{
    struct persist *persist = arg;
    struct persist_adopted *adopted = &persist->adopted;

    if (adopted->from_file) {
        adopted->error = name_file(persist);
    } else { /* a file of earlier data may be there */
        adopted->error = 0;
        (void)!file_unlink(persist->dir_fd, persist->incoming_name);
    }
    if (adopted->error == 0) {
        adopted->error = replace(persist);
    }
    if (adopted->error == 0 && adopted->journals) {
        rewrite_base(persist);
    }
}

static void
begin_replace(struct persist *persist, bool from_file)
{
    struct journal_status status;

    journal_get_status(persist->journal, &status);
    persist->adopted.from_file = from_file;
    persist->adopted.journals = status.holding && !status.suspect;
    if (persist->adopted.journals) {
        persist->rewrite.number = persist->files.next_number++;
        persist->rewrite.position = persist->adopted.position;
        persist->rewrite.sequence = persist->adopted.sequence;
    }
    persist->step = STEP_REPLACE;
    task_start(persist->task, run_replace, persist);
}

/* Lets a journal that holds wait for a base up to this place of the log. */
void
adopt_note(struct persist *persist)
{
    struct journal_status status;

    journal_get_status(persist->journal, &status);
    if (status.holding) {
        journal_hold_here(persist->journal, &persist->adopted.position,
                          &persist->adopted.sequence);
    }
}

void
adopt_begin(struct persist *persist)
{
    CHECK(persist->step == STEP_SAVE && adopt_is_pending(persist));
    begin_replace(persist, false);
}

bool
adopt_begin_file(struct persist *persist)
{
    if (!adopt_is_pending(persist) || !persist->adopted.has_file) {
        return false;
    }
    persist->adopted.has_file = false;
    persist->adopted.written = persist->adopted.arrived;
    persist->save.written = persist->adopted.point;
    persist->save.changes_written = persist->adopted.changes;
    persist->step_started_ns = clock_mono_ns();
    begin_replace(persist, true);
    return true;
}

static void
note_stored(struct persist *persist)
{
    CHECK(persist->adopted.written >= persist->adopted.stored &&
          persist->adopted.written <= persist->adopted.arrived);
    persist->adopted.stored = persist->adopted.written;
    persist->adopted.has_file =
        persist->adopted.has_file && adopt_is_pending(persist);
    log_notice("persist.adopt", "replaced the data on the disk",
               "file=\"%s/%s\" pending=%d", persist->dir,
               persist->snapshot_name, adopt_is_pending(persist));
    persist->options.hooks.moved(persist->options.hooks.ctx);
}

/* Ends the last part of a replacement: the journal with the new base. If other
 * data has arrived meanwhile, that base is outdated. */
static void
end_journals(struct persist *persist)
{
    if (!persist->adopted.journals) {
        rewrite_start_over(persist);
    } else if (adopt_is_pending(persist)) {
        rewrite_outdated(persist);
    } else {
        rewrite_based(persist);
    }
}

bool
adopt_replaced(struct persist *persist, int *ret_error)
{
    struct persist_adopted *adopted = &persist->adopted;

    if (adopted->error == 0) {
        note_stored(persist);
        end_journals(persist);
    }
    /* A walk writes a snapshot next. */
    if (adopted->error != 0 && adopted->from_file) {
        note_failure(persist, "put it in its place", adopted->error);
        persist->step = STEP_NONE;
        return false;
    }
    *ret_error = adopted->error;
    return true;
}

int
adopt_here(struct persist *persist)
{
    int error = replace(persist);

    if (error == 0) {
        note_stored(persist);
        rewrite_start_over(persist);
    }
    return error;
}

/* ---- start --------------------------------------------------------------- */

static bool
refuse_file(const struct persist *persist, const char *what, const char *why)
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
        return refuse_file(persist, "open", strerror(error));
    }
    good = snapshot_read_stamp(fd, &stamp, &damage) == SNAPSHOT_OK;
    file_close(fd);
    if (!good) {
        persist->load.refused = true;
        return refuse_file(persist, "read its header", damage.text);
    }
    error = replace(persist);
    if (error != 0) {
        return refuse_file(persist, "put it in its place", strerror(error));
    }
    log_notice("persist.adopt", "finished replacing the data on the disk",
               "file=\"%s/%s\" history=%s position=%llu", persist->dir,
               persist->snapshot_name, stamp.history,
               (unsigned long long)stamp.position);
    return true;
}
