/* SPDX-License-Identifier: BSD-3-Clause */
#include "persist/ending.h"

#include "base/log.h"
#include "base/metrics.h"
#include "persist/adopt.h"
#include "persist/full_state.h"
#include "persist/persist_state.h"
#include "persist/presence.h"
#include "persist/save.h"
#include "persist/sync.h"

/* ---- a tick -------------------------------------------------------------- */

static bool
has_no_base(const struct journal_status *status)
{
    return status->building || status->holding;
}

/* Returns whether the journal is valid again only with a new base. */
static bool
has_fault(const struct journal_status *status)
{
    return status->faulted || status->holding;
}

/* Returns whether the journal must first get a base. Without one, or after a
 * fault, a start would not find the acknowledged changes. */
static bool
needs_base(const struct persist *persist, const struct persist_conf *conf,
           const struct journal_status *status)
{
    const struct persist_end *how = &persist->ending.how;

    if (!conf->appendonly || how->force || persist->suspended) {
        return false;
    }
    /* A snapshot is enough where there was no journal before. */
    return has_fault(status) ||
           (!how->save && (!status->on || status->building));
}

bool
ending_keeps_off(const struct persist *persist, const struct persist_conf *conf,
                 const struct journal_status *status)
{
    return persist->ending.state != PERSIST_SERVES &&
           !(persist->ending.state == PERSIST_ENDS &&
             needs_base(persist, conf, status));
}

static void
fail_ending(struct persist *persist, const char *what)
{
    struct persist_ending *ending = &persist->ending;

    log_error("persist", "cannot end", "reason=\"%s\" forced=%d", what,
              ending->how.force);
    ending->complete = false;
    ending->state = ending->how.force ? PERSIST_ENDED : PERSIST_END_FAILED;
}

/* Returns whether the step that is under way is needed. The steps of tasks
 * always are, since they end soon and cannot be broken off. */
static bool
is_needed(const struct persist *persist, const struct persist_conf *conf,
          const struct journal_status *status)
{
    if (persist->step == STEP_SAVE) {
        return persist->ending.how.save || needs_base(persist, conf, status);
    }
    return persist->step != STEP_BASE || needs_base(persist, conf, status);
}

/* Returns whether the files are where a start looks for them. They may have
 * been removed a moment ago. */
static bool
has_files(const struct persist *persist, const struct persist_conf *conf)
{
    const struct persist_end *how = &persist->ending.how;

    return how->force || (!conf->appendonly && !how->save) ||
           presence_is_sure(persist);
}

/* Begins the last snapshot, or checks whether it has succeeded. Returns whether
 * it is on the disk, or was not requested. */
static bool
has_saved(struct persist *persist)
{
    struct persist_ending *ending = &persist->ending;

    if (!ending->how.save || ending->saved) {
        return true;
    }
    if (persist->suspended) {
        log_warn("persist.save", "saved nothing",
                 "reason=\"the data was dropped for the primary's, which has "
                 "not arrived: the files stay as they are\"");
        ending->saved = true;
    } else if (ending->saving && persist->info.saves != ending->saves) {
        ending->saved = true;
    } else if (ending->saving &&
               persist->save.retry.failures > ending->failures) {
        fail_ending(persist, "the snapshot could not be written");
    } else { /* none was begun, or it was broken off */
        ending->saving = true;
        ending->saves = persist->info.saves;
        ending->failures = persist->save.retry.failures;
        save_begin(persist);
    }
    return ending->saved;
}

/* Syncs the journal. During a fault, waits for the new base instead. */
static enum journal_flushed
flush(const struct persist *persist, const struct journal_status *status)
{
    if (!has_fault(status)) {
        return journal_flush(persist->journal);
    }
    return persist->ending.how.force ? JOURNAL_FLUSH_FAILED
           : persist->suspended      ? JOURNAL_FLUSHED
                                     : JOURNAL_FLUSHES;
}

void
ending_tick(struct persist *persist, const struct persist_conf *conf,
            const struct journal_status *status)
{
    struct persist_ending *ending = &persist->ending;
    enum journal_flushed flushed;

    if (ending->state != PERSIST_ENDS) {
        return;
    }
    flushed = flush(persist, status);
    if (flushed == JOURNAL_FLUSH_FAILED) {
        fail_ending(persist, "the journal cannot be written");
        return;
    }
    if (needs_base(persist, conf, status) &&
        (persist->rewrite_retry.failures > 0 ||
         (adopt_is_pending(persist) && persist->save.retry.failures > 0))) {
        fail_ending(persist, "a new base of the journal cannot be written");
        return;
    }
    if (presence_is_lost(persist) && persist->presence.retry.failures > 0 &&
        !has_files(persist, conf)) {
        fail_ending(persist, "the data directory is gone");
        return;
    }
    sync_break_off(persist);
    if (walker_is_running(persist->own.walker) &&
        persist->step != STEP_ENDING && !is_needed(persist, conf, status)) {
        full_state_break_off(&persist->own);
    }
    if (persist->step == STEP_NONE && !sync_is_running(persist) &&
        !task_is_running(persist->task) && has_files(persist, conf) &&
        !needs_base(persist, conf, status) && has_saved(persist) &&
        flushed == JOURNAL_FLUSHED) {
        ending->complete = !conf->appendonly || ending->how.save ||
                           persist->suspended || !has_no_base(status);
        ending->state = PERSIST_ENDED;
    }
}

/* ---- the server's side --------------------------------------------------- */

void
persist_end(struct persist *persist, const struct persist_end *how)
{
    persist->ending =
        (struct persist_ending){ .state = PERSIST_ENDS, .how = *how };
    presence_look_anew(persist);
    persist->options.hooks.poke(persist->options.hooks.ctx);
}

void
persist_end_abort(struct persist *persist)
{
    persist->ending = (struct persist_ending){ .state = PERSIST_SERVES };
    persist->options.hooks.poke(persist->options.hooks.ctx);
}

enum persist_ending_state
persist_ending(const struct persist *persist)
{
    return persist->ending.state;
}

bool
persist_end_settle(struct persist *persist)
{
    struct persist_ending *ending = &persist->ending;
    bool saved = !ending->how.save || persist->suspended ||
                 persist->save.changes_saved == metric_sum(METRIC_CHANGES);

    CHECK(ending->state == PERSIST_ENDED);
    if (!ending->how.force &&
        (!saved || journal_flush(persist->journal) != JOURNAL_FLUSHED)) {
        ending->saved = ending->saving = false;
        ending->state = PERSIST_ENDS;
    }
    return ending->state == PERSIST_ENDED;
}

uint64_t
persist_end_progress(struct persist *persist)
{
    struct journal_status status;
    struct walker_figures figures;

    journal_get_status(persist->journal, &status);
    walker_get_figures(persist->own.walker, &figures);
    return status.written + status.synced + status.syncs + figures.bytes +
           (uint64_t)persist->step;
}

bool
persist_end_misses(struct persist *persist, struct persist_missing *ret_missing)
{
    const struct persist_ending *ending = &persist->ending;
    struct journal_status status;

    journal_get_status(persist->journal, &status);
    *ret_missing = (struct persist_missing){
        .no_base = has_no_base(&status),
        .no_save = ending->how.save && !ending->saved && !persist->suspended,
    };
    if (status.on || status.closing) {
        ret_missing->unsynced_bytes = status.written - status.synced;
        ret_missing->unwritten_bytes = status.appended - status.written;
    }
    return !ending->complete;
}
