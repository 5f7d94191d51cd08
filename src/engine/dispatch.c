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
#include "engine/lock_set.h"
#include "engine/observe.h"
#include "engine/run.h"
#include "engine/slow.h"
#include "engine/txn.h"
#include "net/loop.h"
#include "net/pending.h"

#include <stdio.h>

enum {
    MANY_WORDS = 1024,
    ERROR_REPLY_MAX = ERROR_TEXT_MAX + 64, /* prefix and line end */
    REFUSALS_MAX = 100, /* before the password, then the connection closes */
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

void
dispatch_prepare(struct request *req, const struct command *command,
                 unsigned words, const struct slice *argv, size_t argc)
{
    struct worker *worker = req->worker;

    req->command = command;
    req->session = worker->session;
    req->obey = worker->session->obey;
    req->argv = argv;
    req->argc = argc;
    req->args = args_of(argv + words, argc - words);
    req->reply = worker->reply;
    req->now_ms = worker->now_ms;
    req->dirty = 0;
    req->counted = 0;
    req->effect.kind = EFFECT_VERBATIM;
    req->effect.argc = 0;
}

/* What paused has worked in several parts, and lasted for their sum. */
static void
count_whole(struct request *req, uint64_t calls, uint64_t took_ns)
{
    struct session *session = req->session;

    if (calls == 0) {
        session->worked_ns += took_ns;
        return;
    }
    if (!req->worker->in_exec) {
        took_ns += session->worked_ns;
        session->worked_ns = 0;
    }
    stats_lasted(req->worker->stats, command_id(req->command), calls, took_ns);
    slow_took(req, took_ns);
}

void
dispatch_count(struct request *req, uint64_t calls)
{
    struct worker *worker = req->worker;
    uint64_t took_ns;
    uint64_t now_ns;

    if (worker->alone) {
        worker->held.since_ns = 0;
        return; /* a replay repeats what was counted when it happened */
    }
    now_ns = clock_mono_ns();
    slow_note_longest(req, now_ns);
    took_ns = now_ns - worker->now_ns;
    worker->now_ns = now_ns;
    stats_took(worker->stats, command_id(req->command), calls, took_ns);
    count_whole(req, calls, took_ns);
    metric_add(METRIC_COMMANDS, (int64_t)calls);
}

/* ---- errors -------------------------------------------------------------- */

/* Only the first %s is filled in: the row of an unknown command has two, and
 * its detail brings the whole text. */
void
dispatch_error_text(const struct worker *worker, enum err err, char *ret_text,
                    size_t size)
{
    const char *text = err_text(err);
    const char *hole = strstr(text, "%s");

    if (hole == NULL) {
        (void)snprintf(ret_text, size, "%s", text);
    } else if (strstr(hole + 2, "%s") != NULL) {
        (void)snprintf(ret_text, size, "%s", worker->detail);
    } else {
        (void)snprintf(ret_text, size, "%.*s%s%s", (int)(hole - text), text,
                       worker->detail, hole + 2);
    }
}

static void
reply_with_error(struct request *req, enum err err)
{
    char text[ERROR_TEXT_MAX];
    struct buf *out = req->reply->buf;
    size_t limit = out->limit;
    enum mem_claim before = mem_set_claim(MEM_SERVE);

    dispatch_error_text(req->worker, err, text, sizeof(text));
    if (limit > 0 && out->len + ERROR_REPLY_MAX > limit) {
        out->limit = out->len + ERROR_REPLY_MAX; /* it may be exceeded */
    }
    reply_error(req->reply, err_prefix(err), slice_of(text));
    out->limit = limit;
    (void)mem_set_claim(before);
    dispatch_note_error(req, err);
}

void
dispatch_note_error(struct request *req, enum err err)
{
    req->worker->failed = req->command;
    req->worker->failure = err;
    stats_bump(&req->worker->stats->error[err], 1);
    metric_add(METRIC_ERROR_REPLIES, 1);
}

void
dispatch_refuse(struct request *req, enum err err)
{
    char text[ERROR_TEXT_MAX];

    if (req->command != NULL) {
        struct stats_command *stats = req->worker->stats->command;

        stats_bump(&stats[command_id(req->command)].rejected, 1);
    }
    txn_refused(req->session);
    if (!req->session->authenticated &&
        ++req->session->refusals >= REFUSALS_MAX) {
        req->session->closing = true;
    }
    if (req->command != NULL && req->command->id == CMD_ID_EXEC) {
        dispatch_error_text(req->worker, err, text, sizeof(text));
        txn_abort(req, err, text);
    } else {
        reply_with_error(req, err);
    }
}

/* ---- running, locks held ------------------------------------------------- */

/* What clients and keys keep takes nothing of the reserve. */
static enum mem_claim
claim_of(const struct command *command)
{
    return (command->flags & (CMD_DENYOOM | CMD_KEEPS)) != 0 ? MEM_FILL
                                                             : MEM_SERVE;
}

/* Runs the handler, and puts its error in the place of its reply. */
static enum err
call_handler(struct request *req)
{
    struct buf *out = req->reply->buf;
    size_t mark = out->len;
    enum mem_claim before = mem_set_claim(claim_of(req->command));
    enum err err = req->command->handler(req);

    (void)mem_set_claim(before);
    if (__builtin_expect(out->failed, 0)) { /* no room for the reply */
        err = out->over ? ERR_REPLY_LIMIT : ERR_NOMEM;
        out->failed = false;
        out->over = false;
    }
    if (__builtin_expect(err != OK, 0)) {
        struct stats_command *stats = req->worker->stats->command;

        out->len = mark;
        if (err != ERR_AGAIN) {
            reply_with_error(req, err);
            stats_bump(&stats[command_id(req->command)].failed, 1);
        }
    }
    if (req->dirty > 0) {
        effect_add(req);
    }
    return err;
}

enum err
dispatch_run_locked(struct request *req)
{
    enum err err = call_handler(req);

    observe_read(req); /* what paused has read a part of its keys */
    if (err != ERR_AGAIN) {
        observe_ran(req);
    }
    return err;
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
    err = dispatch_run_locked(req);
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
        dispatch_refuse(req, err);
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
    dispatch_prepare(req, req->command, 1, argv, count + 1);
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
        dispatch_refuse(req, ERR_NOMEM);
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
        dispatch_refuse(req, err);
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
                dispatch_refuse(req, err);
            }
            return true;
        }
        if (outcome == ADMITTED) {
            outcome = dispatch_run_locked(req) == ERR_AGAIN ? PAUSED : RAN;
        }
    }
    observe_close(worker); /* what held no lock, and EXEC itself */
    observe_wake(worker);
    if (outcome != REFUSED) {
        dispatch_count(req, outcome == RAN);
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
           (session->obey || !admit_is_loading(service));
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
        dispatch_prepare(req, command, command != NULL ? words : 1,
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
