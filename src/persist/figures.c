/* SPDX-License-Identifier: BSD-3-Clause
 *
 * INFO must be right even for a client whose request loop 0 has not seen yet.
 */
#include "persist/figures.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "persist/adopt.h"
#include "persist/persist_state.h"
#include "persist/rewrite.h"
#include "persist/sync.h"

static const uint64_t SECOND_NS = 1000000000;

static int64_t
seconds_of(uint64_t since_ns, bool running)
{
    return running ? (int64_t)((clock_mono_ns() - since_ns) / SECOND_NS) : -1;
}

void
figures_publish(struct persist *persist, const struct journal_status *status)
{
    struct persist_info *info = &persist->info;
    struct walker_figures figures = { 0 };
    bool saving = persist->step == STEP_SAVE || persist->step == STEP_REPLACE;
    bool syncing = sync_is_running(persist);
    bool rewriting = persist->step == STEP_PREPARE ||
                     persist->step == STEP_BASE || persist->step == STEP_COMMIT;

    if (walker_is_running(persist->own.walker)) {
        walker_get_figures(persist->own.walker, &figures);
    } else if (syncing) {
        walker_get_figures(persist->synced.walker, &figures);
    }
    info->saving = saving;
    info->syncing = syncing;
    info->adopting = adopt_is_pending(persist);
    info->last_save_s = persist->save.last_ms / 1000;
    info->current_save_seconds = seconds_of(persist->step_started_ns, saving);
    info->current_sync_seconds = seconds_of(persist->sync.started_ns, syncing);
    info->save_failures = persist->save.retry.failures;
    info->writing = figures;
    info->writing_percent =
        figures.keys_total > 0
            ? 100.0 * (double)figures.keys / (double)figures.keys_total
            : 0;
    info->rewriting = rewriting;
    info->rewrites_begun =
        atomic_load(&persist->requests[PERSIST_REWRITE].begun);
    info->last_rewrite_ok = persist->rewrite_retry.failures == 0;
    if (info->last_rewrite_ok) {
        info->last_rewrite_error = 0;
    }
    info->current_rewrite_seconds =
        seconds_of(persist->step_started_ns, rewriting);
    info->rewrite_failures = persist->rewrite_retry.failures;
    info->journal_bytes =
        status->on ? rewrite_journal_bytes(persist, status) : 0;
    info->manifest_generation = persist->files.manifest.generation;
    info->misconf = atomic_load(&persist->gives_up);
    info->journal = *status;
    pthread_mutex_lock(&persist->mutex);
    persist->published = *info;
    pthread_mutex_unlock(&persist->mutex);
}

static void
add_loading(struct persist *persist, struct persist_info *info)
{
    uint64_t started_ns = atomic_load(&persist->load.started_ns);
    uint64_t done = atomic_load(&persist->load.progress.bytes);
    uint64_t total = atomic_load(&persist->load.total_bytes);
    uint64_t spent_ns = started_ns > 0 ? clock_mono_ns() - started_ns : 0;

    info->loading = atomic_load(&persist->load.loading);
    info->loading_started_s = atomic_load(&persist->load.started_ms) / 1000;
    info->loading_total_bytes = total;
    info->loading_loaded_bytes = done;
    if (total > 0 && done > 0) {
        double rest = total > done ? (double)(total - done) : 0;

        info->loading_percent = 100.0 * (double)done / (double)total;
        info->loading_eta_s = (uint64_t)((double)spent_ns / (double)done *
                                         rest / (double)SECOND_NS);
    }
}

/* Loop 0 follows `appendonly` and a request for a rewrite with its next tick.
 * Until then a client that has its reply must not see "nothing is on, nothing
 * is under way": it would take that for the end of its request. */
static void
foretell(struct persist_info *info, uint64_t asked)
{
    struct journal_status *journal = &info->journal;
    bool follows = info->appendonly && !info->loading;
    bool has_no_base = !journal->on || journal->building;

    info->rewrite_scheduled = asked > info->rewrites_begun ||
                              (follows && has_no_base && !info->rewriting);
    if (follows && !journal->on && !journal->closing) {
        journal->building = true;
    } else if (!info->appendonly && journal->on) {
        journal->closing = true;
    }
}

/* Reads the figures in the order of a rewrite's steps: first how many were
 * requested, then whether one has begun, then whether building has ended. So a
 * rewrite that ends during the call is not missed. */
void
persist_get_info(struct persist *persist, struct persist_info *ret_info)
{
    uint64_t asked = atomic_load(&persist->requests[PERSIST_REWRITE].asked);

    pthread_mutex_lock(&persist->mutex);
    *ret_info = persist->published;
    ret_info->appendonly = persist->conf.appendonly;
    ret_info->held_max_ms = persist->conf.misconf_after_ns / 1000000;
    pthread_mutex_unlock(&persist->mutex);
    journal_get_status(persist->journal, &ret_info->journal);
    ret_info->changes = (uint64_t)(metric_sum(METRIC_CHANGES) -
                                   atomic_load(&persist->save.changes_saved));
    add_loading(persist, ret_info);
    foretell(ret_info, asked);
}
