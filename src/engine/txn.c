/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue is an array of commands, each with its arguments in one
 * allocation; the watches are a list.
 */
#include "engine/txn.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "engine/admit.h"
#include "engine/dispatch.h"
#include "engine/effect.h"
#include "engine/handlers.h"
#include "engine/lock_set.h"
#include "engine/observe.h"

#include <stdio.h>

/* A walk in EXEC cannot step aside, and everybody waits for it: after this
 * time no further one begins. */
enum { WALKS_NS = 100 * 1000 * 1000 };

struct queued {
    const struct command *command;
    unsigned words; /* of its name */
    size_t argc;
    struct slice *argv; /* the slices, then the bytes */
};

struct watch {
    struct watch *next;
    struct key_version seen;
    uint32_t db;
    uint32_t len;
    char name[];
};

struct txn {
    bool open;    /* MULTI was called */
    bool refused; /* a command could not be queued */
    struct queued *queue;
    size_t count, capacity;
    size_t bytes;     /* of the queue, all arguments and watches */
    uint32_t flags;   /* of any command in the queue */
    uint32_t lacking; /* by any */
    struct watch *watches;
    uint32_t watch_count;
};

bool
txn_is_open(const struct session *session)
{
    return session->txn != NULL && session->txn->open;
}

bool
txn_takes(const struct session *session, const struct command *command)
{
    return txn_is_open(session) && command->id != CMD_ID_EXEC &&
           command->id != CMD_ID_DISCARD && command->id != CMD_ID_MULTI &&
           command->id != CMD_ID_WATCH && command->id != CMD_ID_QUIT &&
           command->id != CMD_ID_RESET;
}

void
txn_refused(struct session *session)
{
    if (txn_is_open(session)) {
        session->txn->refused = true;
    }
}

uint32_t
txn_flags(const struct session *session)
{
    return session->txn != NULL ? session->txn->flags : 0;
}

uint32_t
txn_common_flags(const struct session *session)
{
    return session->txn != NULL ? ~session->txn->lacking : UINT32_MAX;
}

static void
drop_watches(struct session *session)
{
    struct txn *txn = session->txn;

    if (txn == NULL || txn->watches == NULL) {
        return;
    }
    while (txn->watches != NULL) {
        struct watch *next = txn->watches->next;

        txn->bytes -= sizeof(struct watch) + txn->watches->len;
        mem_free(txn->watches);
        txn->watches = next;
    }
    txn->watch_count = 0;
    atomic_store(&session->multi_bytes, txn->bytes);
    atomic_store(&session->watch_count, 0);
    metric_add(METRIC_WATCHING_CLIENTS, -1);
}

/* Clients in MULTI; who repeats a log is none. */
static void
count_open(const struct session *session, int64_t n)
{
    if (!session->obey) {
        metric_add(METRIC_MULTI_CLIENTS, n);
    }
}

void
txn_end(struct session *session)
{
    struct txn *txn = session->txn;

    if (txn == NULL) {
        return;
    }
    drop_watches(session);
    for (size_t i = 0; i < txn->count; i++) {
        mem_free(txn->queue[i].argv);
    }
    mem_free(txn->queue);
    if (txn->open) {
        count_open(session, -1);
        atomic_store(&session->multi_count, -1);
        atomic_store(&session->multi_bytes, 0);
    }
    mem_free(txn);
    session->txn = NULL;
}

static enum err
need_txn(struct session *session)
{
    if (session->txn == NULL) {
        session->txn = mem_try_zalloc(sizeof(*session->txn));
    }
    return session->txn != NULL ? OK : ERR_NOMEM;
}

void
txn_abort(struct request *req, enum err err, const char *text)
{
    const char *prefix = err_prefix(err);
    bool plain = strcmp(prefix, "ERR") == 0;
    char line[1024];

    (void)snprintf(line, sizeof(line),
                   "Transaction discarded because of: %s%s%s",
                   plain ? "" : prefix, plain ? "" : " ", text);
    reply_error(req->reply, err_prefix(ERR_EXECABORT), slice_of(line));
    stats_bump(&req->worker->stats->error[ERR_EXECABORT], 1);
    metric_add(METRIC_ERROR_REPLIES, 1);
    txn_end(req->session);
}

/* ---- MULTI, DISCARD ------------------------------------------------------ */

enum err
cmd_multi(struct request *req)
{
    struct session *session = req->session;
    enum err err = need_txn(session);

    if (err != OK) {
        return err;
    }
    if (session->txn->open) {
        return request_fail(req, ERR_CUSTOM, "MULTI calls can not be nested");
    }
    session->txn->open = true;
    atomic_store(&session->multi_count, 0);
    count_open(session, 1);
    reply_ok(req->reply);
    return OK;
}

enum err
cmd_discard(struct request *req)
{
    if (!txn_is_open(req->session)) {
        return request_fail(req, ERR_CUSTOM, "DISCARD without MULTI");
    }
    txn_end(req->session);
    reply_ok(req->reply);
    return OK;
}

/* ---- queueing ------------------------------------------------------------ */

/* argc slices and the bytes they point to, as the allocator rounds them. None
 * of it can overflow: it lies in memory already. */
static size_t
argv_bytes(const struct slice *argv, size_t argc)
{
    size_t bytes = argc * sizeof(*argv);

    for (size_t i = 0; i < argc; i++) {
        bytes += argv[i].len;
    }
    return (bytes + 15) / 16 * 16;
}

/* One allocation: argc slices, then the bytes they point to. */
static struct slice *
copy_argv(const struct slice *argv, size_t argc, size_t bytes)
{
    struct slice *copy = mem_try_alloc(bytes);
    char *to;

    if (copy == NULL) {
        return NULL;
    }
    to = (char *)(copy + argc);
    for (size_t i = 0; i < argc; i++) {
        if (argv[i].len > 0) {
            memcpy(to, argv[i].data, argv[i].len);
        }
        copy[i] = (struct slice){ to, argv[i].len };
        to += argv[i].len;
    }
    return copy;
}

static bool
fits_limits(const struct request *req, size_t more_bytes)
{
    const struct txn *txn = req->session->txn;
    const struct client_limits *limits = &req->service->limits;

    return req->obey || (txn->count < limits->multi_commands_max &&
                         txn->bytes + more_bytes <= limits->multi_bytes_max);
}

/* A place in the queue for one more command, whose arguments have so many
 * bytes. */
static enum err
make_room(const struct request *req, size_t bytes)
{
    struct txn *txn = req->session->txn;
    bool full = txn->count == txn->capacity;
    size_t grows = full && txn->capacity > 0 ? txn->capacity : 8;
    struct queued *queue;

    if (!fits_limits(req, bytes + (full ? grows * sizeof(*queue) : 0))) {
        return ERR_MULTI_QUEUE;
    }
    if (!full) {
        return OK;
    }
    queue =
        mem_try_realloc(txn->queue, (txn->capacity + grows) * sizeof(*queue));
    if (queue == NULL) {
        return ERR_NOMEM;
    }
    txn->queue = queue;
    txn->capacity += grows;
    txn->bytes += grows * sizeof(*queue);
    return OK;
}

enum err
txn_queue(struct request *req)
{
    struct txn *txn = req->session->txn;
    size_t bytes = argv_bytes(req->argv, req->argc);
    struct slice *argv;
    enum err err = make_room(req, bytes);

    if (err != OK) {
        return err;
    }
    argv = copy_argv(req->argv, req->argc, bytes);
    if (argv == NULL) {
        return ERR_NOMEM;
    }
    txn->queue[txn->count++] = (struct queued){
        .command = req->command,
        .words = (unsigned)(req->args.argv - req->argv),
        .argc = req->argc,
        .argv = argv,
    };
    txn->bytes += bytes;
    txn->flags |= req->command->flags;
    txn->lacking |= ~req->command->flags;
    atomic_store(&req->session->multi_count, (int32_t)txn->count);
    atomic_store(&req->session->multi_bytes, txn->bytes);
    reply_simple(req->reply, "QUEUED");
    return OK;
}

/* ---- WATCH --------------------------------------------------------------- */

static enum err
watch_one(struct request *req, const struct key *key)
{
    struct txn *txn = req->session->txn;
    size_t bytes = sizeof(struct watch) + key->name.len;
    struct watch *watch;

    if (txn->watch_count >= req->service->limits.multi_commands_max ||
        txn->bytes + bytes > req->service->limits.multi_bytes_max) {
        return ERR_MULTI_QUEUE;
    }
    watch = mem_try_alloc(bytes);
    if (watch == NULL) {
        return ERR_NOMEM;
    }
    watch->db = key->db;
    watch->len = (uint32_t)key->name.len;
    memcpy(watch->name, key->name.data, key->name.len);
    watch->seen = keyspace_version(req->keyspace, key, req->now_ms);
    watch->next = txn->watches;
    txn->watches = watch;
    if (txn->watch_count++ == 0) {
        metric_add(METRIC_WATCHING_CLIENTS, 1);
    }
    txn->bytes += bytes;
    atomic_store(&req->session->watch_count, txn->watch_count);
    atomic_store(&req->session->multi_bytes, txn->bytes);
    return OK;
}

enum err
cmd_watch(struct request *req)
{
    enum err err;

    if (txn_is_open(req->session)) {
        return request_fail(req, ERR_CUSTOM,
                            "WATCH inside MULTI is not allowed");
    }
    err = need_txn(req->session);
    for (size_t i = 1; i < req->argc && err == OK; i++) {
        struct key key = request_key(req, i);

        err = watch_one(req, &key);
    }
    if (err == OK) {
        reply_ok(req->reply);
    }
    return err;
}

enum err
cmd_unwatch(struct request *req)
{
    drop_watches(req->session);
    reply_ok(req->reply);
    return OK;
}

/* ---- EXEC ---------------------------------------------------------------- */

/* A walk locks stripes by itself, which would meet those that EXEC holds: such
 * a transaction takes the world. */
static struct lock_set
locks_of(const struct txn *txn)
{
    struct lock_set locks = { 0 };

    for (size_t i = 0; i < txn->count; i++) {
        const struct queued *queued = &txn->queue[i];

        lock_set_add(&locks, queued->command, queued->argv, queued->argc);
        locks.world = locks.world || queued->command->lock == LOCK_WALK;
    }
    for (const struct watch *w = txn->watches; w != NULL; w = w->next) {
        lock_set_add_key(&locks, (struct slice){ w->name, w->len });
    }
    return locks;
}

static bool
watches_hold(const struct request *req, const struct txn *txn)
{
    for (const struct watch *w = txn->watches; w != NULL; w = w->next) {
        struct slice name = { w->name, w->len };
        struct key key = { name, hash_name(name), w->db };

        if (keyspace_changed(req->keyspace, &key, w->seen, req->now_ms)) {
            return false;
        }
    }
    return true;
}

/* REPLICAOF may stand before it in the queue. */
static bool
is_no_longer_admitted(const struct request *req)
{
    return (req->command->flags & CMD_WRITE) != 0 && !req->obey &&
           req->service->role.replica;
}

/* Commands in the queue may call into the session (RESET cannot: it is never
 * queued), so the queue stays as it is until all have run. */
static void
run_queue(struct request *exec, const struct txn *txn)
{
    struct request req = { .worker = exec->worker,
                           .service = exec->service,
                           .keyspace = exec->keyspace };
    uint64_t started_ns = exec->worker->now_ns;

    for (size_t i = 0; i < txn->count; i++) {
        const struct queued *queued = &txn->queue[i];

        dispatch_prepare(&req, queued->command, queued->words, queued->argv,
                         queued->argc);
        if (queued->command->keys.first > 0 && queued->argc > 1) {
            req.key = request_key(&req, (size_t)queued->command->keys.first);
        }
        if (queued->command->lock == LOCK_WALK &&
            exec->worker->now_ns - started_ns > WALKS_NS) {
            dispatch_refuse(&req, ERR_EXEC_WALK);
            continue;
        }
        if (is_no_longer_admitted(&req)) {
            dispatch_refuse(&req, admit_writes(req.service));
            continue;
        }
        (void)dispatch_run_locked(&req);
        dispatch_count(&req, 1);
    }
}

/* One-item commands on one key: at most one of them makes the filter. */
static bool
continues_run(const struct queued *before, const struct queued *queued)
{
    return before->command == queued->command &&
           queued->command->many != NULL &&
           slice_equal(before->argv[1], queued->argv[1]);
}

static size_t
queue_effect_bytes(const struct txn *txn)
{
    size_t bytes = 0;

    for (size_t i = 0; i < txn->count; i++) {
        const struct queued *queued = &txn->queue[i];

        if ((queued->command->flags & CMD_WRITE) == 0) {
            continue;
        }
        bytes +=
            i > 0 && continues_run(queued - 1, queued)
                ? stage_effect_bytes(queued->argv, queued->argc)
                : effect_bytes(queued->command, queued->argv, queued->argc);
    }
    return bytes;
}

/* Whether what is queued may write now, and room for all of its effects. */
static enum err
prepare_writes(struct request *req, const struct txn *txn)
{
    enum err err = req->obey ? OK : admit_writes(req->service);

    if (err != OK || req->service->journal == NULL) {
        return err;
    }
    return effect_open(req->worker, queue_effect_bytes(txn));
}

/* Under the locks. */
static void
compare_and_run(struct request *req, const struct txn *txn)
{
    if (watches_hold(req, txn)) {
        req->worker->in_exec = true;
        reply_array(req->reply, txn->count);
        run_queue(req, txn);
        req->worker->in_exec = false;
    } else {
        reply_null_array(req->reply);
    }
}

enum err
cmd_exec(struct request *req)
{
    struct txn *txn = req->session->txn;
    struct worker *worker = req->worker;
    struct lock_set locks;
    enum err err = OK;

    if (!txn_is_open(req->session)) {
        return request_fail(req, ERR_CUSTOM, "EXEC without MULTI");
    }
    if (txn->refused) {
        txn_end(req->session);
        return ERR_EXECABORT;
    }
    locks = locks_of(txn);
    lock_set_enter(&locks, worker);
    if (!req->obey) { /* the section is another one than that of admit_now */
        err = admit_data(req->service, ~txn->lacking);
    }
    if (err == OK && (txn->flags & CMD_WRITE) != 0) {
        err = prepare_writes(req, txn);
    }
    if (err == OK) {
        lock_set_lock(&locks, worker);
        compare_and_run(req, txn);
        effect_close(worker, &locks, true);
        observe_close(worker);
        lock_set_unlock(&locks, worker);
    }
    lock_set_leave(&locks, worker);
    if (err == ERR_AGAIN) {
        return err;
    }
    if (err != OK) {
        char text[ERROR_TEXT_MAX];

        dispatch_error_text(worker, err, text, sizeof(text));
        txn_abort(req, err, text);
    } else {
        txn_end(req->session);
    }
    return OK;
}
