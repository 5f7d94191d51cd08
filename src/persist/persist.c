/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One step is under way at a time. Each tick continues it or chooses the next
 * one, in this order: a directory that is gone; data of another server; DEBUG
 * RELOAD; the journal (its faults, its switch, rewrites); snapshots.
 */
#include "persist/persist.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "journal/group.h"
#include "journal/spool.h"
#include "keyspace/gate.h"
#include "keyspace/memory.h"
#include "persist/adopt.h"
#include "persist/directory.h"
#include "persist/ending.h"
#include "persist/figures.h"
#include "persist/full_state.h"
#include "persist/hash_secret.h"
#include "persist/incoming.h"
#include "persist/journal_dir.h"
#include "persist/learn.h"
#include "persist/misconf.h"
#include "persist/persist_state.h"
#include "persist/place.h"
#include "persist/presence.h"
#include "persist/reload.h"
#include "persist/rewrite.h"
#include "persist/save.h"
#include "persist/sync.h"

#include <errno.h>
#include <stdio.h>

static const uint64_t SECOND_NS = 1000000000;

/* ---- life ---------------------------------------------------------------- */

struct persist *
persist_new(const struct persist_options *options)
{
    static const struct keyspace_memory unlimited = { 0 };
    struct persist *persist = mem_zalloc(sizeof(*persist));
    const struct persist_hooks *hooks = &options->hooks;
    struct journal_hooks journal_hooks = { .moved = hooks->moved,
                                           .event = hooks->poke,
                                           .tapped = hooks->tapped,
                                           .ctx = hooks->ctx };

    persist->options = *options;
    persist->gate = keyspace_gate(options->keyspace);
    persist->load.env = keyspace_env(&unlimited, UINT64_MAX);
    persist->dir_fd = persist->journal_fd = persist->lock_fd = -1;
    persist->files.next_number = 1;
    persist->save.last_ms = clock_wall_ms();
    persist->info.last_save_ok = persist->info.last_rewrite_ok = true;
    persist->info.last_save_seconds = persist->info.last_rewrite_seconds = -1;
    history_begin(&persist->log.history, NULL);
    persist->load.history = persist->log.history;
    atomic_store(&persist->load.loading, true);
    CHECK(pthread_mutex_init(&persist->mutex, NULL) == 0);
    persist->journal = journal_new(&journal_hooks);
    full_state_init(&persist->own, persist);
    full_state_init(&persist->synced, persist);
    persist->rewrite.file.fd = -1;
    persist->task = task_new("files", hooks->poke, hooks->ctx);
    persist->incoming = incoming_new(hooks->moved, hooks->ctx);
    persist->presence.task = task_new("presence", hooks->poke, hooks->ctx);
    return persist;
}

void
persist_free(struct persist *persist)
{
    if (persist == NULL) {
        return;
    }
    task_free(persist->task);
    task_free(persist->presence.task);
    incoming_free(persist->incoming);
    learn_end(persist);
    full_state_fini(&persist->own);
    full_state_fini(&persist->synced);
    journal_free(persist->journal);
    file_close(persist->journal_fd);
    file_close(persist->dir_fd);
    file_close(persist->lock_fd);
    mem_free(persist->dir);
    mem_free(persist->journal_dir);
    mem_free(persist->journal_name);
    mem_free(persist->snapshot_name);
    mem_free(persist->arrival_name);
    mem_free(persist->incoming_name);
    pthread_mutex_destroy(&persist->mutex);
    explicit_bzero(&persist->secret, sizeof(persist->secret));
    mem_free(persist);
}

void
persist_apply_conf(struct persist *persist)
{
    const struct conf *conf = persist->options.conf;
    struct persist_conf *to = &persist->conf;

    /* Loop 0 reads the copy outside the gate: see read_conf. */
    pthread_mutex_lock(&persist->mutex);
    to->save = conf->save;
    to->appendonly = conf->appendonly;
    to->stop_writes = conf->stop_writes_on_bgsave_error;
    to->syncs = conf->appendfsync != CONF_APPENDFSYNC_NO;
    to->misconf_after_ns = (uint64_t)conf->misconf_after * SECOND_NS;
    to->rewrite_percentage = (uint64_t)conf->auto_aof_rewrite_percentage;
    to->rewrite_min_bytes = conf->auto_aof_rewrite_min_size;
    pthread_mutex_unlock(&persist->mutex);
    persist->spool_limit = (uint64_t)conf->save_buffer_limit;
    persist->spool_waits = conf->save_buffer_full == CONF_BUFFER_FULL_WAIT;
    journal_set_limit(persist->journal, (size_t)conf->journal_buffer_limit);
    journal_set_sync(
        persist->journal,
        conf->appendfsync == CONF_APPENDFSYNC_ALWAYS     ? JOURNAL_ALWAYS
        : conf->appendfsync == CONF_APPENDFSYNC_EVERYSEC ? JOURNAL_EVERYSEC
                                                         : JOURNAL_NO);
}

static struct persist_conf
read_conf(struct persist *persist)
{
    struct persist_conf conf;

    pthread_mutex_lock(&persist->mutex);
    conf = persist->conf;
    pthread_mutex_unlock(&persist->mutex);
    return conf;
}

/* ---- loading ------------------------------------------------------------- */

/* Logs which state the start did not load. It is normal that the snapshot is
 * older than the journal. But an operator who put a snapshot beside a journal
 * wanted the snapshot. And a snapshot of a history that the journal does not
 * continue came from elsewhere. */
static void
log_not_taken(const struct persist *persist)
{
    const struct recover_result *found = &persist->load.found;
    bool continued = history_covers(&persist->load.history,
                                    slice_of(found->snapshot.history),
                                    found->snapshot.position);

    if (found->journal_stale) {
        log_warn("persist.recover", "did not load the journal",
                 "dir=\"%s\" reason=\"the snapshot is newer\" position=%llu "
                 "snapshot_position=%llu",
                 persist->journal_dir,
                 (unsigned long long)found->journal_position,
                 (unsigned long long)found->snapshot.position);
    } else if (found->from_journal && found->has_snapshot &&
               (!continued ||
                found->snapshot.position != found->journal_position)) {
        log_write(continued ? LOG_NOTICE : LOG_WARN, "persist.recover",
                  "did not load the snapshot",
                  "path=\"%s/%s\" reason=\"%s\" position=%llu "
                  "journal_position=%llu created_ms=%llu next=\"to have the "
                  "snapshot instead, stop the server, move %s away and "
                  "start\"",
                  persist->dir, persist->snapshot_name,
                  continued ? "the journal is newer"
                            : "the journal is further in the log, and "
                              "does not continue this snapshot",
                  (unsigned long long)found->snapshot.position,
                  (unsigned long long)found->journal_position,
                  (unsigned long long)found->snapshot.created_ms,
                  persist->journal_dir);
    }
}

static void
log_loaded(struct persist *persist, uint64_t ms)
{
    const struct recover_result *found = &persist->load.found;

    if (found->cut[0] != '\0') {
        log_warn("persist.recover", "cut the journal's torn end", "what=\"%s\"",
                 found->cut);
    }
    log_not_taken(persist);
    if (found->journal_unfinished) {
        log_notice("persist.recover", "did not load an unfinished journal",
                   "dir=\"%s\" reason=\"it was being built or removed, and "
                   "it holds nothing that was acknowledged\"",
                   persist->journal_dir);
    }
    log_notice("persist.recover", "loaded",
               "from=%s keys=%llu groups=%llu position=%llu ms=%llu",
               found->from_journal    ? "journal"
               : found->from_snapshot ? "snapshot"
                                      : "nothing",
               (unsigned long long)found->keys,
               (unsigned long long)found->groups,
               (unsigned long long)found->position, (unsigned long long)ms);
}

bool
persist_refuses_data(const struct persist *persist)
{
    return persist->load.refused;
}

bool
persist_open(struct persist *persist)
{
    if (!directory_open(persist) || !hash_secret_open(persist)) {
        return false;
    }
    journal_dir_tidy(persist);
    return adopt_finish(persist);
}

const char *
persist_dir(const struct persist *persist)
{
    return persist->dir;
}

bool
persist_load(struct persist *persist, const struct recover_replay *replay)
{
    struct recover_options options = {
        .dir_fd = persist->dir_fd,
        .journal_fd = persist->journal_fd,
        .snapshot_name = persist->snapshot_name,
        .dir = persist->dir,
        .journal_dir = persist->journal_dir,
        .keyspace = persist->options.keyspace,
        .env = &persist->load.env,
        .replay = replay,
        .completion = persist->options.completion,
        .history = &persist->load.history,
        .position = &persist->load.position,
        .progress = &persist->load.progress,
        .total_bytes = &persist->load.total_bytes,
    };
    char reason[PERSIST_REASON_MAX];
    uint64_t start_ns = clock_mono_ns();
    uint64_t ms;

    atomic_store(&persist->load.started_ms, clock_wall_ms());
    atomic_store(&persist->load.started_ns, start_ns);
    if (!hash_secret_load(persist, &options, reason, sizeof(reason))) {
        log_error("persist.recover", "cannot load the data", "reason=\"%s\"",
                  reason);
        persist->load.refused = true;
        return false;
    }
    ms = (clock_mono_ns() - start_ns) / 1000000;
    persist->info.load_keys = persist->load.found.keys;
    persist->info.load_ms = ms;
    log_loaded(persist, ms);
    return true;
}

/* Removes the files that a kill has left of a journal that is off. A failure is
 * harmless. */
static void
tidy_unkept(struct persist *persist)
{
    const struct recover_result *found = &persist->load.found;

    if (persist->journal_fd >= 0 && found->has_manifest) {
        journal_dir_clean(persist, &found->manifest);
    } else if (found->journal_unfinished) {
        (void)!journal_dir_clear(persist);
    }
}

bool
persist_begin(struct persist *persist)
{
    const struct recover_result *found = &persist->load.found;
    bool journals = read_conf(persist).appendonly;

    gate_raise(persist->gate, 0);
    place_set(persist);
    gate_lower(persist->gate, 0);
    persist->save.changes_saved = metric_sum(METRIC_CHANGES);
    /* Needed even if the journal is stale: it may stay where it is. */
    persist->files.manifest = found->manifest;
    persist->files.next_number = rewrite_next_number(&found->manifest);
    if (!presence_check_start(persist, read_conf(persist).save.count > 0) ||
        !rewrite_set_aside(persist, journals) ||
        (journals && !rewrite_resume(persist))) {
        return false;
    }
    if (!journals) {
        tidy_unkept(persist);
    }
    atomic_store(&persist->load.loading, false);
    persist_tick(persist);
    return true;
}

/* ---- the journal --------------------------------------------------------- */

/* Does not count the first line of the increment as growth: otherwise an idle
 * server with low limits would rewrite for ever. */
static bool
has_grown(const struct persist *persist, const struct persist_conf *conf,
          const struct journal_status *status)
{
    uint64_t bytes = rewrite_journal_bytes(persist, status);
    uint64_t base = persist->info.base_bytes > 0 ? persist->info.base_bytes : 1;

    if (persist->files.old_bytes == 0 &&
        status->file_bytes <= GROUP_FIRST_LINE_BYTES) {
        return false;
    }
    return conf->rewrite_percentage > 0 && bytes >= conf->rewrite_min_bytes &&
           (bytes - base) / base * 100 + (bytes - base) % base * 100 / base >=
               conf->rewrite_percentage;
}

static void
turn_off(struct persist *persist, const struct journal_status *status)
{
    gate_raise(persist->gate, 0);
    place_begin_idle(persist);
    journal_turn_off(persist->journal, status->faulted);
    if (!place_is_logged(persist)) {
        persist->options.hooks.journaling(persist->options.hooks.ctx, NULL);
    }
    gate_lower(persist->gate, 0);
    log_notice("persist.journal", "switched off", "position=%llu",
               (unsigned long long)persist->log.idle_position);
}

/* Begins a step that the journal needs; false if it needs none. */
static bool
keep_journal(struct persist *persist, const struct persist_conf *conf,
             const struct journal_status *status)
{
    struct requests *asked = &persist->requests[PERSIST_REWRITE];

    if (!conf->appendonly) {
        requests_begin(asked);
        requests_settle(asked, false);
        return false;
    }
    if (status->closing || !retry_is_due(&persist->rewrite_retry)) {
        return false;
    }
    if (!status->on) {
        rewrite_begin(persist, JOURNAL_BUILD);
    } else if (status->faulted || status->holding) {
        rewrite_begin(persist, JOURNAL_REBASE);
    } else if (status->building || requests_are_due(asked) ||
               has_grown(persist, conf, status)) {
        rewrite_begin(persist, JOURNAL_ROTATE);
    } else {
        return false;
    }
    return true;
}

/* ---- a tick -------------------------------------------------------------- */

static void
reap(struct persist *persist)
{
    enum persist_step step = persist->step;
    int error;

    if (!full_state_has_ended(&persist->own, &error)) {
        return;
    }
    if (step == STEP_SAVE && error != ECANCELED) {
        save_written(persist, error);
    } else if (step == STEP_BASE && error != ECANCELED) {
        rewrite_base_written(persist, error);
    } else {
        rewrite_abandon(persist);
        if (step == STEP_BASE) { /* a promotion has cancelled it: repeat it */
            (void)requests_ask(&persist->requests[PERSIST_REWRITE]);
        }
        persist->step = STEP_NONE;
    }
}

/* Ends the walk of a snapshot or a base, if it has visited everything. */
static void
end_walk(struct persist *persist)
{
    uint64_t position;
    uint64_t sequence;

    if (!full_state_is_through(&persist->own) || persist->step == STEP_ENDING) {
        return;
    }
    gate_raise(persist->gate, 0);
    if (full_state_end(&persist->own, &position, &sequence)) {
        if (persist->step == STEP_BASE) {
            rewrite_turn(persist, position, sequence);
        } else {
            save_note(persist);
        }
    }
    gate_lower(persist->gate, 0);
}

/* Returns whether the files of a rewrite do not belong to the present data: the
 * data was dropped or replaced, or the files are gone. */
static bool
is_outdated(const struct persist *persist)
{
    const struct persist_rewrite *rewrite = &persist->rewrite;

    return (persist->step == STEP_PREPARE || persist->step == STEP_COMMIT) &&
           ((persist->step == STEP_PREPARE && persist->suspended) ||
            rewrite->arrived != persist->adopted.arrived ||
            rewrite->losses != persist->presence.losses);
}

static void
end_replacing(struct persist *persist)
{
    int error;

    if (adopt_replaced(persist, &error)) {
        save_ended(persist, error);
    }
}

static void
finish_task(struct persist *persist)
{
    if (task_is_running(persist->task)) {
        return;
    }
    if (is_outdated(persist)) {
        rewrite_forget(persist);
    } else if (persist->step == STEP_PREPARE) {
        rewrite_prepared(persist);
    } else if (persist->step == STEP_COMMIT) {
        rewrite_committed(persist);
    } else if (persist->step == STEP_REPLACE) {
        end_replacing(persist);
    } else if (persist->step == STEP_REOPEN) {
        presence_reopened(persist);
    }
}

static void
log_fault(struct persist *persist, const struct journal_status *status)
{
    if (status->faulted && !persist->fault_seen) {
        log_error("persist.journal", "failed to write the journal",
                  "file=%llu error=\"%s\" next=\"writes a new base\"",
                  (unsigned long long)status->file_number,
                  strerror(status->error));
        persist->rewrite_retry.not_before_ns = 0;
    } else if (!status->faulted && persist->fault_seen) {
        log_notice("persist.journal", "recovered", "%s", "");
    }
    persist->fault_seen = status->faulted;
}

/* Returns whether the base that is being written is useless. A suspect file
 * makes it useless, except in a rebase before the journal has turned to its new
 * file. */
static bool
is_futile(const struct persist *persist, const struct persist_conf *conf,
          const struct journal_status *status)
{
    const struct persist_rewrite *rewrite = &persist->rewrite;
    bool expected =
        rewrite->how == JOURNAL_REBASE && !rewrite_has_turned(persist);

    return !conf->appendonly || rewrite->losses != persist->presence.losses ||
           (status->suspect && !expected);
}

/* Breaks off a step that would keep clients waiting, or is no longer wanted. */
static void
break_off(struct persist *persist, const struct persist_conf *conf,
          const struct journal_status *status)
{
    bool off = !conf->appendonly && status->on;

    if ((persist->step == STEP_SAVE && status->faulted &&
         !adopt_is_pending(persist)) ||
        (persist->step == STEP_BASE && is_futile(persist, conf, status))) {
        /* The request for a save stays due. */
        full_state_break_off(&persist->own);
    }
    if (status->faulted && !persist->sync.limited) {
        sync_break_off(persist);
    }
    if (off && persist->step != STEP_PREPARE && persist->step != STEP_COMMIT) {
        turn_off(persist, status);
    }
}

/* Begins a step of our own. Data from another server comes first, if an attempt
 * is due: until it is on the disk, no other file is touched. */
static void
begin_own(struct persist *persist, const struct persist_conf *conf,
          const struct journal_status *status)
{
    if (adopt_needs_disk(persist, conf) ||
        !keep_journal(persist, conf, status)) {
        if (save_is_due(persist, conf)) {
            save_begin(persist);
        }
    }
}

/* Begins or ends a snapshot for replicas. Steps that need all of persist wait
 * for it. A snapshot of slots begins even while the journal cannot be written,
 * since the new owner has the slots on its own disk. */
static void
choose_sync(struct persist *persist, const struct journal_status *status)
{
    bool faulted = status->faulted && !persist->sync.limited;
    bool hurries = (status->on && (faulted || status->holding)) ||
                   adopt_is_pending(persist);

    if (presence_is_lost(persist)) {
        sync_break_off(persist);
    } else if (persist->sync.wanted && !sync_is_running(persist) && !hurries &&
               !persist->suspended && !reload_is_due(persist) &&
               persist->ending.state == PERSIST_SERVES) {
        sync_begin(persist);
    }
}

static void
choose(struct persist *persist, const struct persist_conf *conf,
       const struct journal_status *status)
{
    if (persist->step != STEP_NONE || task_is_running(persist->task)) {
        return;
    }
    if (presence_is_lost(persist)) {
        if (!sync_is_running(persist)) {
            /* Role and other files need the directory. */
            presence_reopen(persist);
        }
    } else if (ending_keeps_off(persist, conf, status) ||
               (!persist->suspended && adopt_begin_file(persist))) {
        return;
    } else if (reload_is_due(persist) && !sync_is_running(persist)) {
        reload_run(persist);
    } else if (!persist->suspended) {
        begin_own(persist, conf, status);
    }
}

/* Publishes outcomes at the end of a tick. So when a client learns that a save
 * has failed, INFO shows that already, and writes are refused. */
static void
publish_outcomes(struct persist *persist)
{
    bool news = false;

    for (int i = 0; i < PERSIST_REQUESTS; i++) {
        news = requests_publish(&persist->requests[i]) || news;
    }
    if (news) {
        persist->options.hooks.moved(persist->options.hooks.ctx);
    }
}

void
persist_tick(struct persist *persist)
{
    struct persist_conf conf = read_conf(persist);
    struct journal_status status;

    if (atomic_load(&persist->load.loading)) {
        return;
    }
    reap(persist);
    sync_reap(persist);
    finish_task(persist);
    persist->presence.saves = conf.save.count > 0;
    presence_tick(persist);
    journal_get_status(persist->journal, &status);
    presence_look_at_refill(persist, &conf, &status);
    log_fault(persist, &status);
    break_off(persist, &conf, &status);
    end_walk(persist);
    sync_end_walk(persist);
    full_state_park(persist);
    ending_tick(persist, &conf, &status);
    choose(persist, &conf, &status);
    choose_sync(persist, &status);
    journal_get_status(persist->journal, &status);
    misconf_update(persist, &conf, &status);
    figures_publish(persist, &status);
    publish_outcomes(persist);
}

enum persist_parks
persist_parks(const struct persist *persist)
{
    return persist->info.parks;
}

/* ---- the end ------------------------------------------------------------- */

void
persist_halt(struct persist *persist)
{
    task_free(persist->task);
    task_free(persist->presence.task);
    learn_end(persist);
    persist->task = persist->presence.task = NULL;
    incoming_free(persist->incoming);
    persist->incoming = NULL;
    journal_halt(persist->journal);
    full_state_fini(&persist->own);
    full_state_fini(&persist->synced);
}

/* ---- any thread ---------------------------------------------------------- */

struct journal *
persist_journal(struct persist *persist)
{
    return persist->journal;
}

uint64_t
persist_ask(struct persist *persist, enum persist_request what)
{
    uint64_t ticket = requests_ask(&persist->requests[what]);

    persist->options.hooks.poke(persist->options.hooks.ctx);
    return ticket;
}

enum persist_outcome
persist_outcome(const struct persist *persist, enum persist_request what,
                uint64_t ticket)
{
    return requests_outcome(&persist->requests[what], ticket);
}

const atomic_bool *
persist_gives_up(const struct persist *persist)
{
    return &persist->gives_up;
}
