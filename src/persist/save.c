/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A save is written by full_state, or at once under the raised gate
 * (save_here).
 */
#include "persist/save.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "keyspace/walk_part.h"
#include "persist/adopt.h"
#include "persist/full_state.h"
#include "persist/persist_state.h"
#include "persist/place.h"

#include <errno.h>

enum {
    RETRY_FIRST_S = 5,
    RETRY_MAX_S = 60,
    RETRY_HOLDING_S = 1 /* clients may wait */
};

static const uint64_t SECOND_NS = 1000000000;

void
save_ended(struct persist *persist, int error)
{
    uint64_t took_ns = clock_mono_ns() - persist->step_started_ns;
    struct journal_status status;
    bool holds;

    journal_get_status(persist->journal, &status);
    holds = status.holding && adopt_is_pending(persist);
    persist->step = STEP_NONE;
    persist->info.last_save_seconds = (int64_t)(took_ns / SECOND_NS);
    persist->info.last_save_ok = error == 0;
    persist->info.last_save_error = error;
    requests_settle(&persist->requests[PERSIST_SAVE], error == 0);
    if (error != 0) {
        retry_failed(&persist->save.retry,
                     (holds ? RETRY_HOLDING_S : RETRY_FIRST_S) * SECOND_NS,
                     (holds ? RETRY_HOLDING_S : RETRY_MAX_S) * SECOND_NS);
        persist->adopted.failed = true;
        persist->options.hooks.moved(persist->options.hooks.ctx);
        log_error("persist.save", "failed to save",
                  "error=\"%s\" failures=%llu", strerror(error),
                  (unsigned long long)persist->save.retry.failures);
        return;
    }
    persist->save.retry = (struct retry){ 0 };
    persist->save.changes_saved = persist->save.changes_written;
    persist->save.stored = persist->save.written;
    persist->save.last_ms = clock_wall_ms();
    persist->info.saves++;
    log_notice("persist.save", "saved", "file=\"%s/%s\" ms=%llu", persist->dir,
               persist->snapshot_name, (unsigned long long)(took_ns / 1000000));
}

void
save_written(struct persist *persist, int error)
{
    if (error == 0 && adopt_is_pending(persist)) {
        adopt_begin(persist);
    } else {
        save_ended(persist, error);
    }
}

static struct walker_job
make_job(const struct persist *persist)
{
    return full_state_job(persist, persist->dir_fd,
                          adopt_snapshot_name(persist));
}

void
save_note(struct persist *persist)
{
    persist->save.changes_written = metric_sum(METRIC_CHANGES);
    persist->save.written = place_point(persist);
    persist->adopted.written = persist->adopted.arrived;
    if (adopt_is_pending(persist)) {
        adopt_note(persist);
    }
}

int
save_here(struct persist *persist)
{
    struct walker_job job = make_job(persist);
    int error;

    save_note(persist);
    error = full_state_write_here(persist, &job);
    return error == 0 && adopt_is_pending(persist) ? adopt_here(persist)
                                                   : error;
}

int
save_slots_here(struct persist *persist, const struct slot_set *slots,
                const char *name)
{
    const struct walk_part part = { .of = WALK_PART_SLOTS, .slots = slots };
    struct walker_job job = full_state_job(persist, persist->dir_fd, name);

    if (persist->step != STEP_NONE || task_is_running(persist->task) ||
        persist->suspended) {
        return EBUSY;
    }
    job.part = &part;
    return full_state_write_here(persist, &job);
}

void
save_begin(struct persist *persist)
{
    struct walker_job job = make_job(persist);

    CHECK(persist->step == STEP_NONE);
    persist->step = STEP_SAVE;
    persist->step_started_ns = clock_mono_ns();
    requests_begin(&persist->requests[PERSIST_SAVE]);
    full_state_start(&persist->own, &job);
}

bool
save_is_due(struct persist *persist, const struct persist_conf *conf)
{
    uint64_t since_ms = clock_wall_ms() - persist->save.last_ms;
    uint64_t changes =
        (uint64_t)(metric_sum(METRIC_CHANGES) - persist->save.changes_saved);

    if (requests_are_due(&persist->requests[PERSIST_SAVE])) {
        return true;
    }
    if (adopt_is_pending(persist)) {
        return retry_is_due(&persist->save.retry);
    }
    for (size_t i = 0; i < conf->save.count; i++) {
        if (changes >= conf->save.rules[i].changes &&
            since_ms / 1000 >= conf->save.rules[i].seconds) {
            return retry_is_due(&persist->save.retry);
        }
    }
    return false;
}
