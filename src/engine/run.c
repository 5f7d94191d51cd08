/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The time of a run is split evenly among its commands.
 *
 * Who adds what may be there already (to find duplicates is to do just that)
 * changes nothing most of the time, and the filter is not written to then. So a
 * run of such adds is answered under the shared lock, where several loops can
 * be at once. That it is such a run is known only when all items were looked
 * for, almost the whole work; so that new items do not pay for this, it is
 * tried where the last runs changed nothing. Each worker remembers for itself
 * what the last ones did, by key.
 */
#include "engine/run.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/admit.h"
#include "engine/effect.h"
#include "engine/execute.h"
#include "engine/lock_set.h"
#include "engine/observe.h"
#include "engine/refusal.h"
#include "engine/room.h"
#include "engine/slow.h"
#include "keyspace/gate.h"

enum {
    RUN_MAX = 64,       /* commands that may share one lock */
    ONE_ITEM_ARGC = 3,  /* name, key, item */
    UNCHANGED_RUNS = 8, /* so many in a row, and the next is expected to */
};

/* Commands of one row that name one key: their words follow each other. */
struct run {
    const struct slice *argv;
    uint32_t count;
    unsigned stripe;
    bool exclusive;
};

static const struct slice *
words_of(const struct run *run, uint32_t index)
{
    return run->argv + (size_t)index * ONE_ITEM_ARGC;
}

/* The request becomes this one of the run, for who looks at single ones. */
static void
look_at(struct request *req, const struct run *run, uint32_t index)
{
    execute_prepare(req, req->command, 1, words_of(run, index), ONE_ITEM_ARGC);
}

/* Finds the commands from `first` on that can run together, and readies the
 * request for the first. 0 if that is no one-item command. */
static uint32_t
gather(struct request *req, const struct batch *batch, uint32_t first,
       struct run *ret_run)
{
    const struct batch_command *bytes = &batch->command[first];
    const struct slice *argv = &batch->argv[bytes->first];
    const struct command *command;
    uint32_t end = first + 1;

    ret_run->count = 0;
    if (bytes->argc != ONE_ITEM_ARGC) {
        return 0;
    }
    command = command_find(argv[0]);
    if (command == NULL || command->many == NULL) {
        return 0;
    }
    while (end < batch->count && batch->command[end].repeats &&
           end - first < RUN_MAX) {
        end++;
    }
    execute_prepare(req, command, 1, argv, ONE_ITEM_ARGC);
    req->key = request_key(req, 1);
    ret_run->argv = argv;
    ret_run->count = end - first;
    ret_run->stripe = keyspace_stripe_of(req->key.hash);
    ret_run->exclusive = (command->flags & CMD_WRITE) != 0;
    return ret_run->count;
}

/* Counts and times the commands of the run, each by its share. */
static void
count_run(struct request *req, const struct run *run)
{
    struct worker *worker = req->worker;
    unsigned id = command_id(req->command);
    uint64_t now_ns;
    uint64_t each_ns;

    if (worker->alone) {
        return;
    }
    now_ns = clock_mono_ns();
    each_ns = (now_ns - worker->now_ns) / run->count;
    stats_took(worker->stats, id, run->count, run->count * each_ns);
    stats_lasted(worker->stats, id, run->count, each_ns);
    if (__builtin_expect(slow_is(worker->service, each_ns), 0)) {
        for (uint32_t i = 0; i < run->count; i++) {
            look_at(req, run, i);
            slow_took_told(req, each_ns);
        }
    }
    slow_note_longest_run(req, now_ns);
    worker->now_ns = now_ns;
    metric_add(METRIC_COMMANDS, run->count);
}

/* Room for the effects of a run. Its key can be over and created but once. */
static enum err
open_run(struct request *req, const struct run *run)
{
    size_t bytes = EFFECT_EXTRA_BYTES + effect_delete_bytes(req->key.name);

    for (uint32_t i = 0; i < run->count; i++) {
        bytes += stage_effect_bytes(words_of(run, i), ONE_ITEM_ARGC);
    }
    return effect_open(req->worker, bytes);
}

/* Whether what the run does may be done now. */
static bool
may_run(struct request *req, const struct run *run)
{
    struct worker *worker = req->worker;
    const struct service *service = worker->service;

    if (worker->session->obey) {
        return true;
    }
    if (!run->exclusive) {
        return refusal_of_data(service, req->command->flags) == OK;
    }
    return room_admit(worker) == OK && refusal_of_writes(service) == OK;
}

static bool
has_room(struct request *req, const struct run *run)
{
    return !run->exclusive || req->worker->service->journal == NULL ||
           open_run(req, run) == OK;
}

/* So many of the run are done, and the lock is still held. */
static void
close_run(struct worker *worker, struct run *run, uint32_t done)
{
    run->count = done;
    if (worker->service->journal != NULL) {
        effect_close_stripe(worker, run->stripe);
    }
    observe_close(worker);
}

/* How many runs in a row changed nothing: of this key, or of others that have
 * the same place. */
static uint8_t *
unchanged_of(const struct request *req)
{
    return &req->worker->unchanged[req->key.hash % WORKER_PLACES];
}

static void
note_change(const struct request *req)
{
    uint8_t *unchanged = unchanged_of(req);

    if (req->dirty > 0) {
        *unchanged = 0;
    } else if (*unchanged < UNCHANGED_RUNS) {
        (*unchanged)++;
    }
}

/* What does not fit the run makes one of its own, with the lock given back in
 * between. */
static void
run_locked(struct request *req, struct run *run)
{
    uint32_t many = req->command->many(req, run->argv, run->count);

    if (many == 0) {
        (void)execute_locked(req);
        many = 1;
    } else {
        observe_read(req);
    }
    if (run->exclusive && run->count > 1) {
        note_change(req);
    }
    close_run(req->worker, run, many);
}

/* Does the run under the shared lock, if it is expected to change nothing and
 * so it is. False: nothing was done. */
static bool
run_unchanged(struct request *req, struct run *run)
{
    struct worker *worker = req->worker;
    struct keyspace *ks = worker->service->keyspace;
    uint32_t known;

    if (req->command->known == NULL || run->count == 1 ||
        *unchanged_of(req) < UNCHANGED_RUNS) {
        return false;
    }
    keyspace_lock(ks, worker->index, run->stripe, false);
    known = req->command->known(req, run->argv, run->count);
    if (known > 0) {
        observe_read(req);
        close_run(worker, run, known);
    }
    keyspace_unlock(ks, worker->index, run->stripe);
    if (known == 0) {
        *unchanged_of(req) = 0;
    }
    return known > 0;
}

/* Inside of a gate section. False if the run may not be, or has no room. What
 * changes nothing needs none, but is refused where other writes are. */
static bool
run_in_section(struct request *req, struct run *run)
{
    struct worker *worker = req->worker;
    struct keyspace *ks = worker->service->keyspace;

    if (!may_run(req, run)) {
        return false;
    }
    if (run_unchanged(req, run)) {
        return true;
    }
    if (!has_room(req, run)) {
        return false;
    }
    keyspace_lock(ks, worker->index, run->stripe, run->exclusive);
    run_locked(req, run);
    keyspace_unlock(ks, worker->index, run->stripe);
    return true;
}

static void
enter_gate(struct worker *worker)
{
    if (!worker->holds_gate) {
        lock_set_enter_gate(worker);
    }
}

static void
leave_gate(struct worker *worker)
{
    if (!worker->holds_gate) {
        gate_leave(keyspace_gate(worker->service->keyspace), worker->index);
    }
}

bool
run_execute(struct worker *worker, const struct batch *batch, uint32_t first,
            uint32_t *ret_count)
{
    struct request *req = worker->request;
    struct run run;
    bool may = false;

    if (gather(req, batch, first, &run) == 0) {
        *ret_count = 0;
        return false;
    }
    if (worker->alone) {
        may = may_run(req, &run) && has_room(req, &run);
        if (may) {
            run_locked(req, &run);
        }
    } else {
        enter_gate(worker);
        /* A pause that began meanwhile was answered before this section. */
        may = (observed_by(worker->service) & OBSERVED_PAUSE) == 0 &&
              run_in_section(req, &run);
        leave_gate(worker);
    }
    observe_wake(worker);
    if (may) {
        count_run(req, &run);
        atomic_store_explicit(&worker->session->last_command,
                              command_id(req->command) + 1,
                              memory_order_relaxed);
    }
    *ret_count = run.count;
    return may;
}
