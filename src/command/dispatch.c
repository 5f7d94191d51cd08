/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two ways through: runs of one-item commands, which share one lock and
 * overlap their cache misses, and one command at a time for all the rest. The
 * clock is read once a batch and at the end of each run; the time of a run is
 * split evenly among its commands.
 */
#include "command/dispatch.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "command/lock_set.h"
#include "command/txn.h"
#include "net/loop.h"

#include <stdio.h>

enum {
    RUN_MAX = 64,          /* commands that may share one lock */
    ONE_ITEM_ARGC = 3,     /* name, key, item */
    SHOWN_BYTES_MAX = 128, /* of an unknown command and its arguments */
    ERROR_TEXT_MAX = 1024,
    ERROR_REPLY_MAX = ERROR_TEXT_MAX + 64, /* prefix and line end */
};

struct run {
    struct request request[RUN_MAX];
    uint32_t count;
    unsigned stripe;
    bool exclusive;
};

/* ---- small things -------------------------------------------------------- */

struct worker *
dispatch_new_worker(struct service *service, unsigned index)
{
    struct worker *worker = mem_zalloc(sizeof(*worker));

    worker->service = service;
    worker->index = index;
    worker->stats = stats_slot(service->stats, index);
    worker->run = mem_zalloc(sizeof(*worker->run));
    for (unsigned i = 0; i < RUN_MAX; i++) {
        struct request *req = &worker->run->request[i];

        req->worker = worker;
        req->service = service;
        req->keyspace = service->keyspace;
    }
    return worker;
}

void
dispatch_free_worker(struct worker *worker)
{
    if (worker != NULL) {
        buf_free(&worker->arena);
        mem_free(worker->run);
        mem_free(worker);
    }
}

bool
dispatch_is_out_of_memory(const struct service *service)
{
    uint64_t max = service->memory.maxmemory_bytes;

    return max > 0 && mem_used() > max;
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
    req->effect.kind = EFFECT_VERBATIM;
    req->effect.argc = 0;
    req->previous = NULL;
    req->prepared = false;
    req->bloom = NULL;
}

void
dispatch_count(struct worker *worker, const struct command *command,
               uint64_t calls)
{
    struct stats_command *stat = &worker->stats->command[command_id(command)];
    uint64_t now_ns = clock_mono_ns();

    stats_bump(&stat->calls, calls);
    stats_bump(&stat->ns, now_ns - worker->now_ns);
    worker->now_ns = now_ns;
    metric_add(METRIC_COMMANDS, (int64_t)calls);
}

/* ---- errors -------------------------------------------------------------- */

/* The text of a row with its %s filled in. Only the first %s is: the row of
 * an unknown command has two, and its detail brings the whole text. */
static void
error_text(const struct request *req, enum err err, char *ret_text, size_t size)
{
    const char *text = err_text(err);
    const char *hole = strstr(text, "%s");

    if (hole == NULL) {
        (void)snprintf(ret_text, size, "%s", text);
    } else if (strstr(hole + 2, "%s") != NULL) {
        (void)snprintf(ret_text, size, "%s", req->worker->detail);
    } else {
        (void)snprintf(ret_text, size, "%.*s%s%s", (int)(hole - text), text,
                       req->worker->detail, hole + 2);
    }
}

static void
reply_with_error(struct request *req, enum err err)
{
    char text[ERROR_TEXT_MAX];
    struct buf *out = req->reply->buf;
    size_t limit = out->limit;

    error_text(req, err, text, sizeof(text));
    if (limit > 0 && out->len + ERROR_REPLY_MAX > limit) {
        out->limit = out->len + ERROR_REPLY_MAX; /* it may be exceeded */
    }
    reply_error(req->reply, err_prefix(err), slice_of(text));
    out->limit = limit;
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
    if (req->command != NULL && req->command->handler == cmd_exec) {
        error_text(req, err, text, sizeof(text));
        txn_abort(req, err, text);
    } else {
        reply_with_error(req, err);
    }
}

/* ---- running, locks held ------------------------------------------------- */

static void
pass_effect_on(struct request *req)
{
    struct effect_sink *sink = req->service->sink;

    if (sink == NULL || req->dirty == 0 || req->effect.kind == EFFECT_NONE) {
        return;
    }
    if (req->effect.kind == EFFECT_REWRITTEN) {
        sink->append(sink->ctx, req->session->db, req->effect.argv,
                     req->effect.argc);
    } else {
        sink->append(sink->ctx, req->session->db, req->argv, req->argc);
    }
}

enum err
dispatch_run_locked(struct request *req)
{
    struct buf *out = req->reply->buf;
    size_t mark = out->len;
    enum err err = req->command->handler(req);

    if (__builtin_expect(out->failed, 0)) { /* no room for the reply */
        err = out->over ? ERR_REPLY_LIMIT : ERR_NOMEM;
        out->failed = false;
        out->over = false;
    }
    if (__builtin_expect(err != OK, 0)) {
        struct stats_command *stats = req->worker->stats->command;

        out->len = mark;
        if (err == ERR_AGAIN) {
            return err;
        }
        reply_with_error(req, err);
        stats_bump(&stats[command_id(req->command)].failed, 1);
    }
    pass_effect_on(req);
    return err;
}

/* ---- runs of one-item commands ------------------------------------------- */

/* The row of a one-item command, or NULL. Pipelines repeat names: the last
 * one found is tried first, byte for byte. */
static const struct command *
one_item_command(const struct request *last, const struct slice *argv)
{
    const struct command *command;

    if (last != NULL && slice_equal(argv[0], last->argv[0])) {
        return last->command;
    }
    command = command_find(argv[0]);
    return command != NULL && command->prepare != NULL ? command : NULL;
}

/* Gives req its key. False if it needs another lock than the run has. */
static bool
join(struct run *run, struct request *req, const struct request *last)
{
    bool exclusive = (req->command->flags & CMD_WRITE) != 0;
    unsigned stripe = run->stripe;

    if (last != NULL && slice_equal(req->argv[1], last->argv[1])) {
        req->key = last->key;
        req->previous = last;
    } else {
        req->key = request_key(req, 1);
        stripe = keyspace_stripe_of(req->key.hash);
    }
    if (last == NULL) {
        run->stripe = stripe;
        run->exclusive = exclusive;
    }
    return run->stripe == stripe && run->exclusive == exclusive;
}

/* Takes the commands from `first` on that can run together. */
static void
gather(struct worker *worker, const struct batch *batch, uint32_t first)
{
    struct run *run = worker->run;
    struct request *last = NULL;

    run->count = 0;
    for (uint32_t i = first; i < batch->count && run->count < RUN_MAX; i++) {
        const struct batch_command *bytes = &batch->command[i];
        const struct slice *argv = &batch->argv[bytes->first];
        struct request *req = &run->request[run->count];
        const struct command *command;

        if (bytes->argc != ONE_ITEM_ARGC) {
            break;
        }
        command = one_item_command(last, argv);
        if (command == NULL) {
            break;
        }
        dispatch_prepare(req, command, 1, argv, ONE_ITEM_ARGC);
        if (!join(run, req, last)) {
            break;
        }
        run->count++;
        last = req;
    }
}

/* Counts and times each stretch of equal commands of the run by its share. */
static void
count_run(struct worker *worker, const struct run *run)
{
    struct stats_command *stats = worker->stats->command;
    uint64_t now_ns = clock_mono_ns();
    uint64_t each_ns = (now_ns - worker->now_ns) / run->count;
    uint32_t from = 0;

    for (uint32_t i = 1; i <= run->count; i++) {
        const struct command *command = run->request[from].command;

        if (i == run->count || run->request[i].command != command) {
            stats_bump(&stats[command_id(command)].calls, i - from);
            stats_bump(&stats[command_id(command)].ns, (i - from) * each_ns);
            from = i;
        }
    }
    worker->now_ns = now_ns;
    metric_add(METRIC_COMMANDS, run->count);
}

/* Executes as many one-item commands as can share one lock. Returns their
 * number; 0 if the first is none, or if memory does not allow the run, whose
 * commands (run->count) are then to be refused one by one. */
static uint32_t
execute_run(struct worker *worker, struct session *session,
            const struct batch *batch, uint32_t first)
{
    struct keyspace *ks = worker->service->keyspace;
    struct run *run = worker->run;
    uint32_t done = 0;

    gather(worker, batch, first);
    if (run->count == 0) {
        return 0;
    }
    gate_enter(keyspace_gate(ks), worker->index);
    if (!run->exclusive || !dispatch_is_out_of_memory(worker->service)) {
        keyspace_lock(ks, run->stripe, run->exclusive);
        for (uint32_t i = 0; i < run->count; i++) {
            run->request[i].command->prepare(&run->request[i]);
        }
        for (uint32_t i = 0; i < run->count; i++) {
            (void)dispatch_run_locked(&run->request[i]);
        }
        keyspace_unlock(ks, run->stripe);
        done = run->count;
    }
    gate_leave(keyspace_gate(ks), worker->index);
    if (done > 0) {
        count_run(worker, run);
        atomic_store_explicit(&session->last_command,
                              command_id(run->request[done - 1].command) + 1,
                              memory_order_relaxed);
    }
    return done;
}

/* ---- one command --------------------------------------------------------- */

/* How many bytes of a client's word to show; printf stops at a NUL, too. */
static int
shown(struct slice word, size_t max)
{
    return (int)(word.len < max ? word.len : max);
}

static enum err
unknown_command(struct request *req)
{
    char *to = req->worker->detail;
    size_t size = sizeof(req->worker->detail);
    size_t len = (size_t)snprintf(
        to, size, "unknown command '%.*s', with args beginning with: ",
        shown(req->argv[0], SHOWN_BYTES_MAX), req->argv[0].data);
    size_t before = len;

    for (size_t i = 1; i < req->argc && len - before < SHOWN_BYTES_MAX; i++) {
        size_t left = SHOWN_BYTES_MAX - (len - before);

        len += (size_t)snprintf(to + len, size - len, "'%.*s' ",
                                shown(req->argv[i], left), req->argv[i].data);
    }
    return ERR_UNKNOWN_COMMAND;
}

static enum err
unknown_subcommand(struct request *req)
{
    const struct command *container = command_find(req->argv[0]);
    struct slice sub = req->argv[1];
    char name[32];
    size_t i = 0;

    for (; container->name[i] != '\0' && i < sizeof(name) - 1; i++) {
        name[i] = (char)(container->name[i] & ~0x20); /* letters only */
    }
    name[i] = '\0';
    return request_fail(req, ERR_UNKNOWN_SUB,
                        "unknown subcommand '%.*s'. Try %s HELP.",
                        shown(sub, SHOWN_BYTES_MAX), sub.data, name);
}

/* What is checked of every command, run or queued, in Redis's order. */
static enum err
check(struct request *req, unsigned words)
{
    const struct command *command = req->command;
    struct session *session = req->session;

    if (command == NULL) {
        return words == 2 ? unknown_subcommand(req) : unknown_command(req);
    }
    if (!command_arity_fits(command, req->argc)) {
        return request_fail(req, ERR_ARITY, "%s", command->name);
    }
    if (!session->authenticated && (command->flags & CMD_NO_AUTH) == 0) {
        return ERR_NOAUTH;
    }
    if (txn_is_open(session) && (command->flags & CMD_NO_MULTI) != 0) {
        return ERR_NOT_ALLOWED_IN_TXN;
    }
    return OK;
}

/* Drops the reply of a command as CLIENT REPLY asked for. */
static void
apply_reply_mode(struct session *session, struct buf *out, size_t mark)
{
    if (session->reply_mode == REPLY_OFF || session->reply_mode == REPLY_SKIP) {
        out->len = mark;
    }
    if (session->reply_mode == REPLY_SKIP) {
        session->reply_mode = REPLY_ON;
    } else if (session->reply_mode == REPLY_SKIP_NEXT) {
        session->reply_mode = REPLY_SKIP;
    }
}

static void
end_again(struct session *session)
{
    if (session->again != NULL) {
        session->again_free(session->again);
        session->again = NULL;
    }
}

/* Refuses what may not run while more memory is used than allowed. */
static bool
refuse_for_memory(struct request *req)
{
    uint32_t flags = req->command->flags;

    if (req->command->handler == cmd_exec) {
        flags |= txn_flags(req->session);
    } else if (txn_is_open(req->session) &&
               req->command->handler != cmd_discard &&
               req->command->handler != cmd_quit &&
               req->command->handler != cmd_reset) {
        flags |= CMD_DENYOOM; /* Redis queues nothing then */
    }
    if ((flags & CMD_DENYOOM) == 0 ||
        !dispatch_is_out_of_memory(req->service)) {
        return false;
    }
    dispatch_refuse(req, ERR_OOM);
    return true;
}

static enum err
run_with_locks(struct request *req)
{
    struct lock_set locks = { 0 };
    enum err err = OK;

    if (req->command->lock == LOCK_SELF) {
        return dispatch_run_locked(req);
    }
    lock_set_add(&locks, req->command, req->argv, req->argc);
    lock_set_take(&locks, req->worker);
    if (req->command->keys.first > 0) {
        req->key = request_key(req, (size_t)req->command->keys.first);
    }
    err = dispatch_run_locked(req);
    lock_set_give_back(&locks, req->worker);
    return err;
}

/* Checks, then queues or runs. False if the handler paused. */
static bool
execute_one(struct request *req, unsigned words)
{
    struct worker *worker = req->worker;
    struct session *session = req->session;
    struct gate *gate = keyspace_gate(req->keyspace);
    enum err err = check(req, words);
    bool refused;

    if (req->command != NULL) {
        atomic_store_explicit(&session->last_command,
                              command_id(req->command) + 1,
                              memory_order_relaxed);
    }
    if (err != OK) {
        dispatch_refuse(req, err);
        end_again(session);
        return true;
    }
    CHECK(req->command != NULL);
    gate_enter(gate, worker->index);
    refused = refuse_for_memory(req);
    gate_leave(gate, worker->index);
    if (refused) {
        return true;
    }
    if (txn_takes(session, req->command)) {
        err = txn_queue(req);
        if (err != OK) {
            dispatch_refuse(req, err);
        }
        return true;
    }
    err = run_with_locks(req);
    dispatch_count(worker, req->command, err == ERR_AGAIN ? 0 : 1);
    if (err == ERR_AGAIN) {
        return false;
    }
    end_again(session);
    return true;
}

static bool
may_run_fast(const struct session *session)
{
    return session->authenticated && !txn_is_open(session) &&
           session->reply_mode == REPLY_ON;
}

uint32_t
dispatch_batch(struct worker *worker, struct session *session,
               const struct batch *batch, uint32_t first, uint64_t until_ns,
               struct buf *out)
{
    struct reply reply = { out, session->resp };
    uint32_t done = first;
    uint32_t one_by_one = first; /* up to here no run is tried again */

    worker->reply = &reply;
    worker->session = session;
    worker->now_ms = clock_wall_ms();
    worker->now_ns = clock_mono_ns();
    atomic_store_explicit(&session->active_ms, worker->now_ms,
                          memory_order_relaxed);
    while (done < batch->count && !session->closing &&
           out->len < LOOP_FLUSH_BYTES &&
           (done == first || worker->now_ns < until_ns)) {
        const struct batch_command *bytes = &batch->command[done];
        struct request *req = &worker->run->request[0];
        const struct command *command;
        uint32_t ran = 0;
        unsigned words;
        size_t mark = out->len;

        if (done >= one_by_one && may_run_fast(session)) {
            ran = execute_run(worker, session, batch, done);
            one_by_one = done + worker->run->count;
        }
        if (ran > 0) {
            done += ran;
            continue;
        }
        command =
            command_resolve(&batch->argv[bytes->first], bytes->argc, &words);
        dispatch_prepare(req, command, command != NULL ? words : 1,
                         &batch->argv[bytes->first], bytes->argc);
        if (!execute_one(req, words)) {
            break;
        }
        apply_reply_mode(session, out, mark);
        reply.resp = session->resp; /* HELLO may have changed it */
        done++;
    }
    worker->reply = NULL;
    return done;
}
