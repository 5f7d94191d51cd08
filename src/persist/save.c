/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots: when one is due, and what its end means.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "keyspace/access.h"
#include "keyspace/gate.h"
#include "persist/persist_internal.h"

#include <time.h>

enum { RETRY_FIRST_S = 5, RETRY_MAX_S = 60 };

static const uint64_t SECOND_NS = 1000000000;

void
save_ended(struct persist *persist, int error)
{
    uint64_t took_ns = clock_mono_ns() - persist->step_started_ns;
    char why[CHILD_TEXT_MAX];

    persist->step = STEP_NONE;
    persist->info.last_save_seconds = (int64_t)(took_ns / SECOND_NS);
    persist->info.last_save_ok = error == 0;
    requests_settle(&persist->saves, error == 0);
    if (error != 0) {
        persist_failed(&persist->save_retry, RETRY_FIRST_S * SECOND_NS,
                       RETRY_MAX_S * SECOND_NS);
        log_error("persist.save", "failed to save",
                  "error=\"%s\" failures=%llu", child_explain(error, why),
                  (unsigned long long)persist->save_retry.failures);
        return;
    }
    persist->save_retry = (struct persist_retry){ 0 };
    persist->changes_saved = persist->changes_forked;
    persist->last_save_ms = clock_wall_ms();
    persist->info.saves++;
    collapse_want(persist);
    log_notice("persist.save", "saved", "file=\"%s/%s\" ms=%llu cow_bytes=%llu",
               persist->dir, persist->snapshot_name,
               (unsigned long long)(took_ns / 1000000),
               (unsigned long long)persist->info.save_cow_bytes);
}

/* The child's end. */
void
save_written(struct persist *persist, int error)
{
    if (error == 0 && adopt_is_pending(persist)) {
        adopt_begin(persist);
    } else {
        save_ended(persist, error);
    }
}

/* While the child runs, reads leave no mark in the entries: each page that is
 * written to then is copied. */
int
save_fork(struct persist *persist, const struct child_job *job,
          uint64_t *ret_us)
{
    int error = child_start(persist->child, job, ret_us);

    if (error == 0) {
        access_pause(keyspace_access(persist->options.keyspace), true);
    }
    return error;
}

/* Under the raised gate: what is to be written now. */
static struct child_job
make_job(struct persist *persist)
{
    uint64_t position;
    uint64_t sequence;

    place_now(persist, &position, &sequence);
    persist->changes_forked = metric_sum(METRIC_CHANGES);
    persist->adopted.forked = persist->adopted.arrived;
    return persist_job(persist, persist->dir_fd, adopt_snapshot_name(persist),
                       position, sequence);
}

static int
fork_save(struct persist *persist, uint64_t *ret_us)
{
    struct child_job job = make_job(persist);

    return save_fork(persist, &job, ret_us);
}

int
save_here(struct persist *persist)
{
    struct child_job job = make_job(persist);
    int error = child_write_here(persist->child, &job);

    return error == 0 && adopt_is_pending(persist) ? adopt_here(persist)
                                                   : error;
}

void
save_begin(struct persist *persist)
{
    uint64_t us = 0;
    int error;

    persist->step = STEP_SAVE;
    persist->step_started_ns = clock_mono_ns();
    requests_take(&persist->saves);
    gate_raise(persist->gate, 0);
    error = fork_save(persist, &us);
    gate_lower(persist->gate, 0);
    persist->info.fork_us = us;
    persist->info.forks++;
    if (error != 0) {
        save_ended(persist, error);
    }
}

bool
save_is_due(struct persist *persist, const struct persist_conf *conf)
{
    uint64_t since_ms = clock_wall_ms() - persist->last_save_ms;
    uint64_t changes =
        (uint64_t)(metric_sum(METRIC_CHANGES) - persist->changes_saved);

    if (requests_are_due(&persist->saves)) {
        return true;
    }
    if (adopt_is_pending(persist)) {
        return persist_may_try(&persist->save_retry);
    }
    for (size_t i = 0; i < conf->save.count; i++) {
        if (changes >= conf->save.rules[i].changes &&
            since_ms / 1000 >= conf->save.rules[i].seconds) {
            return persist_may_try(&persist->save_retry);
        }
    }
    return false;
}

/* By a child, so that somebody looks after the watchdog meanwhile; here, if
 * none can be had. */
int
save_at_end(struct persist *persist, const struct persist_end *end)
{
    static const struct timespec pause = { .tv_nsec = 5000000 };
    uint64_t us = 0;
    int error = fork_save(persist, &us);

    if (error != 0) {
        return save_here(persist);
    }
    while (!child_reap(persist->child, &error)) {
        end->idle(end->ctx);
        (void)nanosleep(&pause, NULL);
    }
    return error == 0 && adopt_is_pending(persist) ? adopt_here(persist)
                                                   : error;
}
