/* SPDX-License-Identifier: BSD-3-Clause
 *
 * During a walk the log has a tap, whether or not there is a journal. Meanwhile
 * even a server with one loop takes locks, because of the walk's thread.
 */
#include "persist/full_state.h"

#include "base/clock.h"
#include "journal/spool.h"
#include "keyspace/gate.h"
#include "keyspace/walk.h"
#include "persist/persist_state.h"
#include "persist/place.h"

void
full_state_init(struct full_state *state, struct persist *persist)
{
    const struct persist_hooks *hooks = &persist->options.hooks;

    state->persist = persist;
    state->use = state == &persist->own ? JOURNAL_TAP_WALK : JOURNAL_TAP_SYNC;
    state->spool = spool_new(hooks->poke, hooks->ctx);
    state->walker = walker_new(persist->options.keyspace, state->spool,
                               hooks->poke, hooks->ctx);
}

void
full_state_fini(struct full_state *state)
{
    walker_free(state->walker);
    spool_free(state->spool);
    state->walker = NULL;
    state->spool = NULL;
}

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
full_state_start(struct full_state *state, struct walker_job *job)
{
    struct persist *persist = state->persist;
    const struct journal_tap tap = spool_tap(state->spool);
    uint64_t position;
    uint64_t sequence;

    spool_open(state->spool, persist->dir_fd, persist->spool_limit);
    keyspace_share(persist->options.keyspace, true);
    gate_raise(persist->gate, 0);
    place_tap_walk(persist, state->use, &tap, &position, &sequence);
    job->begin = stamp_at(persist, position, sequence);
    walker_start(state->walker, job);
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
    return walker_write_here(persist->own.walker, job);
}

bool
full_state_is_through(struct full_state *state)
{
    return walker_is_through(state->walker);
}

bool
full_state_end(struct full_state *state, uint64_t *ret_position,
               uint64_t *ret_sequence)
{
    struct snapshot_stamp end;

    if (!walker_is_even(state->walker)) {
        walker_go_on(state->walker);
        return false;
    }
    place_untap_walk(state->persist, state->use, ret_position, ret_sequence);
    end = stamp_at(state->persist, *ret_position, *ret_sequence);
    walker_end(state->walker, &end);
    return true;
}

/* Ends the walk, if it was broken off, and closes its spool. */
static void
clear_up(struct full_state *state)
{
    struct persist *persist = state->persist;
    uint64_t position;
    uint64_t sequence;

    if (walker_has_walk(state->walker)) {
        gate_raise(persist->gate, 0);
        walker_drop(state->walker);
        place_untap_walk(persist, state->use, &position, &sequence);
        gate_lower(persist->gate, 0);
    }
    keyspace_share(persist->options.keyspace, false);
    spool_close(state->spool);
}

static enum persist_parks
parks_for(const struct full_state *state)
{
    if (!walker_has_walk(state->walker)) {
        return PARKS_NOTHING;
    }
    if (state->persist->spool_waits && spool_is_crowded(state->spool)) {
        return PARKS_WRITES;
    }
    return walker_lags(state->walker) ? PARKS_REMAKES : PARKS_NOTHING;
}

void
full_state_park(struct persist *persist)
{
    const struct persist_hooks *hooks = &persist->options.hooks;
    enum persist_parks parks = parks_for(&persist->own);
    enum persist_parks more = parks_for(&persist->synced);

    /* The enum is in order of strictness. */
    parks = more > parks ? more : parks;
    if (parks != persist->info.parks) {
        persist->info.parks = parks;
        gate_raise(persist->gate, 0);
        hooks->parks(hooks->ctx, parks);
        gate_lower(persist->gate, 0);
    }
}

bool
full_state_has_ended(struct full_state *state, int *ret_error)
{
    bool ended = walker_reap(state->walker, ret_error);

    if (ended) {
        walker_get_figures(state->walker, &state->persist->info.written);
        clear_up(state);
    }
    return ended;
}

void
full_state_break_off(struct full_state *state)
{
    struct persist *persist = state->persist;

    walker_cancel(state->walker);
    if (state == &persist->synced) {
        persist->sync.ending = true;
        return;
    }
    if (persist->step == STEP_BASE) { /* repeat it later */
        (void)requests_ask(&persist->requests[PERSIST_REWRITE]);
    }
    persist->step = STEP_ENDING;
}
