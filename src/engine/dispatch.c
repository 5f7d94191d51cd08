/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two ways through: runs of one-item commands (run.c), and one command at a
 * time for all the rest. The clock is read once a batch and at the end of each
 * run or command.
 */
#include "engine/dispatch.h"

#include "admin/tracking.h"
#include "base/clock.h"
#include "base/longest.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "engine/admit.h"
#include "engine/effect.h"
#include "engine/execute.h"
#include "engine/lock_set.h"
#include "engine/observe.h"
#include "engine/refusal.h"
#include "engine/run.h"
#include "engine/slow.h"
#include "engine/txn.h"
#include "net/loop.h"
#include "net/pending.h"

#include <stdio.h>

enum {
    MANY_WORDS = 1024,
};

/* While one of these is on, nothing is a run. */
static const uint64_t ONE_BY_ONE = OBSERVED_MONITOR | OBSERVED_PAUSE;

/* ---- small things -------------------------------------------------------- */

struct worker *
dispatch_new_worker(struct service *service, unsigned index)
{
    struct worker *worker = mem_zalloc(sizeof(*worker));

    worker->service = service;
    worker->index = index;
    worker->stats = stats_slot(service->stats, index);
    worker->request = mem_zalloc(sizeof(*worker->request));
    worker->request->worker = worker;
    worker->request->service = service;
    worker->request->keyspace = service->keyspace;
    return worker;
}

void
dispatch_free_worker(struct worker *worker)
{
    if (worker != NULL) {
        buf_free(&worker->arena);
        stage_fini(&worker->stage);
        notice_list_fini(&worker->notices);
        mem_free(worker->request);
        mem_free(worker);
    }
}

/* ---- one command --------------------------------------------------------- */

/* Drops the reply of a command as CLIENT REPLY asked for. */
static void
apply_reply_mode(struct worker *worker, struct buf *out, size_t mark)
{
    struct session *session = worker->session;

    if (!worker->reply_stays && (session->reply_mode == REPLY_OFF ||
                                 session->reply_mode == REPLY_SKIP)) {
        out->len = mark;
    }
    worker->reply_stays = false;
    if (session->reply_mode == REPLY_SKIP) {
        session->reply_mode = REPLY_ON;
    } else if (session->reply_mode == REPLY_SKIP_NEXT) {
        session->reply_mode = REPLY_SKIP;
    }
}

/* The command has ended: what its parts left behind goes, if it was refused
 * between two of them, too. */
static void
end_again(struct session *session)
{
    session->worked_ns = 0;
    if (session->again != NULL) {
        session->again_free(session->again);
        session->again = NULL;
        session->again_bytes = 0;
        atomic_store(&session->blocked, SESSION_RUNS);
    }
}

/* Runs a command whose row names its locks; the gate is entered. */
static enum err
run_with_locks(struct request *req, const struct lock_set *locks)
{
    enum err err;

    lock_set_lock(locks, req->worker);
    if (req->command->keys.first > 0 && req->argc > 1) {
        req->key = request_key(req, (size_t)req->command->keys.first);
    }
    err = execute_locked(req);
    effect_close(req->worker, locks, false);
    observe_close(req->worker);
    lock_set_unlock(locks, req->worker);
    return err;
}

static bool
prepare(struct request *req)
{
    command_prepare_fn prepare_fn = req->command->prepare;

    return prepare_fn == NULL || req->obey || !request_may_pause(req) ||
           prepare_fn(req);
}

enum outcome { ADMITTED, REFUSED, RAN, PAUSED };

/* Refuses, or runs what names its locks; ADMITTED is for the caller to queue
 * or to run. */
static enum outcome
enter(struct request *req, bool queues)
{
    bool runs = !queues && req->command->lock != LOCK_SELF;
    struct lock_set locks = { 0 };
    enum outcome outcome = ADMITTED;
    enum err err;

    if (runs) {
        lock_set_add(&locks, req->command, req->argv, req->argc);
    }
    lock_set_enter(&locks, req->worker);
    err = admit_now(req);
    if (err == OK && runs && !prepare(req)) {
        err = ERR_AGAIN;
    }
    if (err == OK && runs && (req->command->flags & CMD_WRITE) != 0) {
        err = effect_open_for(req);
    }
    if (err != OK) {
        outcome = err == ERR_AGAIN ? PAUSED : REFUSED;
    } else if (runs) {
        outcome = run_with_locks(req, &locks) == ERR_AGAIN ? PAUSED : RAN;
    }
    lock_set_leave(&locks, req->worker);
    if (outcome == REFUSED) {
        execute_refuse(req, err);
    }
    return outcome;
}

/* ---- many names ---------------------------------------------------------- */

/* A command that counts names one by one, and has more of them than their locks
 * shall be held for, is executed as some commands of fewer names, each an
 * effect of its own. What is left of it when others have their turn is in here.
 */
struct splitting {
    size_t at; /* argv position of the next name */
    int64_t counted;
};

enum { NAMES_AT_ONCE = 1000 };

static bool
is_split(const struct request *req, bool queues)
{
    return req->command->splits && req->argc > NAMES_AT_ONCE + 1 && !queues &&
           !req->obey;
}

/* The names from splitting->at on; without memory for them, it is refused. */
static enum outcome
run_piece(struct request *req, struct splitting *splitting, struct slice *argv)
{
    size_t left = req->argc - splitting->at;
    size_t count = left < NAMES_AT_ONCE ? left : NAMES_AT_ONCE;
    const struct slice *all = req->argv;
    size_t argc = req->argc;
    bool in_place = req->worker->in_place;
    enum outcome outcome;

    argv[0] = all[0];
    memcpy(argv + 1, all + splitting->at, count * sizeof(*argv));
    execute_prepare(req, req->command, 1, argv, count + 1);
    req->counted = splitting->counted;
    req->worker->in_place = false; /* these words are no bytes of the batch */
    outcome = enter(req, false);
    req->worker->in_place = in_place;
    req->argv = all;
    req->argc = argc;
    if (outcome == RAN) {
        splitting->at += count;
        splitting->counted = req->counted;
    }
    return outcome;
}

/* One piece; then others have their turn. */
static enum outcome
run_split(struct request *req)
{
    struct splitting *splitting = request_resumed(req);
    struct buf *out = req->reply->buf;
    size_t mark = out->len;
    enum outcome outcome;
    struct slice *argv = mem_try_alloc((NAMES_AT_ONCE + 1) * sizeof(*argv));

    if (argv != NULL && splitting == NULL) {
        splitting = mem_try_zalloc(sizeof(*splitting));
        if (splitting != NULL) {
            splitting->at = 1;
            request_pause(req, splitting, mem_free);
        }
    }
    if (argv == NULL || splitting == NULL) {
        mem_free(argv);
        execute_refuse(req, ERR_NOMEM);
        return REFUSED;
    }
    outcome = run_piece(req, splitting, argv);
    mem_free(argv);
    if (outcome == RAN && splitting->at < req->argc) {
        out->len = mark; /* only the last count is the reply */
        return PAUSED;
    }
    return outcome;
}

/* Whoever was served before in this turn shall not wait for what may last. */
static void
let_others_go(const struct request *req)
{
    struct loop *loop = req->worker->loop;
    bool lasts =
        (req->command->flags & CMD_FAST) == 0 || req->argc > MANY_WORDS;

    if (lasts && loop != NULL) {
        pending_flush(loop);
    }
}

/* Checks, then queues or runs. False if the handler paused, or waits. */
static bool
execute_one(struct request *req, unsigned words)
{
    struct worker *worker = req->worker;
    struct session *session = req->session;
    enum outcome outcome = REFUSED;
    enum err err = admit_request(req, words);

    worker->ran_one = true;
    if (req->command != NULL) {
        atomic_store_explicit(&session->last_command,
                              command_id(req->command) + 1,
                              memory_order_relaxed);
    }
    if (err != OK) {
        execute_refuse(req, err);
    } else {
        bool queues;

        CHECK(req->command != NULL);
        queues = txn_takes(session, req->command);
        if (!queues) {
            let_others_go(req);
        }
        outcome = is_split(req, queues) ? run_split(req) : enter(req, queues);
        if (outcome == ADMITTED && queues) {
            err = txn_queue(req);
            if (err != OK) {
                execute_refuse(req, err);
            }
            return true;
        }
        if (outcome == ADMITTED) {
            outcome = execute_locked(req) == ERR_AGAIN ? PAUSED : RAN;
        }
    }
    observe_close(worker); /* what held no lock, and EXEC itself */
    observe_wake(worker);
    if (outcome != REFUSED) {
        execute_count(req, outcome == RAN);
    }
    if (outcome == PAUSED) {
        return false;
    }
    observe_command_ends(req);
    end_again(session);
    return true;
}

static bool
may_run_fast(const struct session *session, const struct service *service)
{
    return session->authenticated && !txn_is_open(session) &&
           session->reply_mode == REPLY_ON && !session->subscribed &&
           (session->receiver.tracker == NULL ||
            tracking_caching(&session->receiver) == CACHING_DEFAULT) &&
           (observed_by(service) == 0 ||
            ((observed_by(service) & ONE_BY_ONE) == 0 &&
             !inboxes_are_crowded(service->inboxes))) &&
           (session->obey || !refusal_is_loading(service));
}

uint32_t
dispatch_batch(struct worker *worker, struct session *session,
               const struct batch *batch, uint32_t first, uint64_t until_ns,
               struct buf *out)
{
    struct loop *loop = worker->loop;
    struct reply reply = { out, session->resp };
    uint32_t done = first;
    uint32_t one_by_one = first; /* up to here no run is tried again */
    enum mem_claim before = mem_set_claim(MEM_FILL);

    worker->reply = &reply;
    worker->session = session;
    worker->in_place = batch->in_place;
    worker->hold = 0;
    worker->now_ns = loop != NULL && loop->executing != NULL ? loop->now_ns
                                                             : clock_mono_ns();
    session->parked = false;
    session->parked_for_room = false;
    session->parked_ms = 0;
    if (__builtin_expect(
            atomic_load_explicit(&session->blocked, memory_order_relaxed) ==
                SESSION_HELD,
            0)) {
        atomic_store(&session->blocked, SESSION_RUNS);
    }
    if (session->obey) {
        worker->now_ms = 0; /* no key ever expires for who repeats a history */
    } else {
        worker->now_ms = clock_wall_ms_at(worker->now_ns);
        atomic_store_explicit(&session->active_ms, worker->now_ms,
                              memory_order_relaxed);
    }
    longest_turn(worker->now_ns);
    while (done < batch->count && !session->closing &&
           out->len < LOOP_FLUSH_BYTES &&
           (done == first || worker->now_ns < until_ns)) {
        const struct batch_command *bytes = &batch->command[done];
        struct request *req = worker->request;
        const struct command *command;
        uint32_t count; /* of a run */
        unsigned words;
        size_t mark = out->len;

        if (done >= one_by_one && may_run_fast(session, worker->service)) {
            if (run_execute(worker, batch, done, &count)) {
                done += count;
                continue;
            }
            one_by_one = done + count;
        }
        if (session->parked) {
            break;
        }
        command =
            command_resolve(&batch->argv[bytes->first], bytes->argc, &words);
        execute_prepare(req, command, command != NULL ? words : 1,
                        &batch->argv[bytes->first], bytes->argc);
        if (!execute_one(req, words)) {
            break;
        }
        apply_reply_mode(worker, out, mark);
        reply.resp = session->resp; /* HELLO may have changed it */
        done++;
    }
    if (loop != NULL) {
        loop->now_ns = worker->now_ns;
    }
    worker->reply = NULL;
    worker->session = NULL; /* it may be gone when a timer uses the worker */
    (void)mem_set_claim(before);
    return done;
}
