/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From the begin to the end of a walk the log has a tap, whether or not there
 * is a journal, and with one loop the walk's thread shares the locks.
 */
#include "persist/full_state.h"

#include "base/clock.h"
#include "journal/spool.h"
#include "keyspace/gate.h"
#include "keyspace/walk.h"
#include "persist/persist_state.h"
#include "persist/place.h"

struct walker_job
full_state_job(const struct persist *persist, int dir_fd, const char *name)
{
    return (struct walker_job){
        .dir_fd = dir_fd,
        .dir = dir_fd == persist->dir_fd ? persist->dir : persist->journal_dir,
        .name = name,
    };
}

/* Describes the present state, at this place. */
static struct snapshot_stamp
stamp_at(const struct persist *persist, uint64_t position, uint64_t sequence)
{
    struct snapshot_stamp stamp = {
        .position = position,
        .sequence = sequence,
        .created_ms = clock_wall_ms(),
        .keys = keyspace_count_keys(persist->options.keyspace),
    };

    memcpy(stamp.history, persist->log.history.id, sizeof(stamp.history));
    return stamp;
}

void
full_state_start(struct persist *persist, struct walker_job *job)
{
    const struct journal_tap tap = spool_tap(persist->spool);
    uint64_t position;
    uint64_t sequence;

    spool_open(persist->spool, persist->dir_fd, persist->spool_limit);
    keyspace_share(persist->options.keyspace, true);
    gate_raise(persist->gate, 0);
    place_tap_walk(persist, &tap, &position, &sequence);
    job->begin = stamp_at(persist, position, sequence);
    walker_start(persist->walker, job);
    gate_lower(persist->gate, 0);
    persist->info.walks++;
}

int
full_state_write_here(struct persist *persist, struct walker_job *job)
{
    uint64_t position;
    uint64_t sequence;

    persist_place(persist, &position, &sequence);
    job->begin = stamp_at(persist, position, sequence);
    job->still = true;
    return walker_write_here(persist->walker, job);
}

bool
full_state_is_through(struct persist *persist)
{
    return walker_is_through(persist->walker);
}

bool
full_state_end(struct persist *persist, uint64_t *ret_position,
               uint64_t *ret_sequence)
{
    struct snapshot_stamp end;

    if (!walker_is_even(persist->walker)) {
        walker_go_on(persist->walker);
        return false;
    }
    place_untap_walk(persist, ret_position, ret_sequence);
    end = stamp_at(persist, *ret_position, *ret_sequence);
    walker_end(persist->walker, &end);
    return true;
}

/* Ends what the walk left open. */
static void
clear_up(struct persist *persist)
{
    uint64_t position;
    uint64_t sequence;

    if (walker_has_walk(persist->walker)) {
        gate_raise(persist->gate, 0);
        walker_drop(persist->walker);
        place_untap_walk(persist, &position, &sequence);
        gate_lower(persist->gate, 0);
    }
    keyspace_share(persist->options.keyspace, false);
    spool_close(persist->spool);
}

static enum persist_parks
parks_now(struct persist *persist)
{
    if (!walker_has_walk(persist->walker)) {
        return PARKS_NOTHING;
    }
    if (persist->spool_waits && spool_is_crowded(persist->spool)) {
        return PARKS_WRITES;
    }
    return walker_lags(persist->walker) ? PARKS_REMAKES : PARKS_NOTHING;
}

void
full_state_park(struct persist *persist)
{
    const struct persist_hooks *hooks = &persist->options.hooks;
    enum persist_parks parks = parks_now(persist);

    if (parks != persist->info.parks) {
        persist->info.parks = parks;
        gate_raise(persist->gate, 0);
        hooks->parks(hooks->ctx, parks);
        gate_lower(persist->gate, 0);
    }
}

bool
full_state_has_ended(struct persist *persist, int *ret_error)
{
    bool ended = walker_reap(persist->walker, ret_error);

    if (ended) {
        walker_get_figures(persist->walker, &persist->info.written);
        clear_up(persist);
    }
    return ended;
}

void
full_state_break_off(struct persist *persist)
{
    if (persist->step == STEP_BASE) { /* again, later */
        (void)requests_ask(&persist->requests[PERSIST_REWRITE]);
    }
    walker_cancel(persist->walker);
    persist->step = STEP_ENDING;
}
