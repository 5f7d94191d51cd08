/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MULTI, DISCARD, WATCH, UNWATCH and EXEC. EXEC locks the stripes of all its
 * keys and of all watched ones in order, compares the watched versions, and
 * runs the queue.
 */
#include "access/handlers.h"
#include "base/hash.h"
#include "engine/ahead.h"
#include "engine/effect.h"
#include "engine/execute.h"
#include "engine/lock_set.h"
#include "engine/observe.h"
#include "engine/refusal.h"
#include "engine/rights.h"
#include "engine/route.h"
#include "engine/txn.h"

/* A walk in EXEC cannot pause, and all clients wait for it: after this time
 * EXEC begins no further walk. */
enum { WALKS_NS = 100 * 1000 * 1000 };

/* admit_by_all() refuses scripts, but it does not check commands of a log. */
enum err
cmd_script(struct request *req)
{
    (void)req;
    return ERR_SCRIPTS;
}

/* ---- MULTI, DISCARD ------------------------------------------------------ */

enum err
cmd_multi(struct request *req)
{
    struct session *session = req->session;
    enum err err;

    if (txn_is_open(session)) {
        return request_fail(req, ERR_CUSTOM, "MULTI calls can not be nested");
    }
    err = txn_begin(session);
    if (err == OK) {
        reply_ok(req->reply);
    }
    return err;
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

/* ---- WATCH --------------------------------------------------------------- */

enum err
cmd_watch(struct request *req)
{
    enum err err = OK;

    if (txn_is_open(req->session)) {
        return request_fail(req, ERR_CUSTOM,
                            "WATCH inside MULTI is not allowed");
    }
    for (size_t i = 1; i < req->argc && err == OK; i++) {
        struct key key = request_key(req, i);

        err = txn_watch(req, &key);
    }
    if (err == OK) {
        reply_ok(req->reply);
    }
    return err;
}

enum err
cmd_unwatch(struct request *req)
{
    txn_unwatch(req->session);
    reply_ok(req->reply);
    return OK;
}

/* ---- EXEC ---------------------------------------------------------------- */

/* Returns the locks of a transaction. A walk locks stripes by itself, which
 * would deadlock with those of EXEC, so a transaction with a walk raises the
 * gate. */
static struct lock_set
locks_of(const struct txn *txn)
{
    struct lock_set locks;

    lock_set_init(&locks);
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
        struct key key = key_named(name, w->db);

        if (keyspace_changed(req->keyspace, &key, w->seen, req->now_ms)) {
            return false;
        }
    }
    return true;
}

/* A REPLICAOF earlier in the queue may have made the server a replica. */
static bool
is_no_longer_admitted(const struct request *req)
{
    return (req->command->flags & CMD_WRITE) != 0 && !req->obey &&
           req->service->role.replica;
}

/* Looks up ahead what the next commands of the queue will read. A SELECT among
 * them makes it useless, not wrong. */
static void
look_ahead(const struct request *exec, const struct txn *txn, size_t first)
{
    struct run runs[KEYSPACE_AHEAD_MAX];
    struct ahead ahead;
    uint32_t db = exec->session->db;

    ahead.count = 0;
    for (size_t i = first; i < txn->count && i - first < KEYSPACE_AHEAD_MAX;
         i++) {
        const struct queued *queued = &txn->queue[i];
        const struct command *command = queued->command;

        if (command->lock == LOCK_KEYS && command->keys.first > 0) {
            struct slice name = queued->argv[command->keys.first];

            runs[ahead.count] =
                run_of(command, queued->words, queued->argv, queued->argc);
            ahead.run[ahead.count] = &runs[ahead.count];
            ahead.key[ahead.count++] = key_named(name, db);
        }
    }
    ahead_fetch(&ahead, exec->keyspace);
}

/* Queued commands may change the session, so the queue stays until all have
 * run. RESET, which would end the transaction, is never queued. */
static void
run_queue(struct request *exec, const struct txn *txn)
{
    struct request req = { .worker = exec->worker,
                           .service = exec->service,
                           .keyspace = exec->keyspace };
    uint64_t started_ns = exec->worker->now_ns;

    for (size_t i = 0; i < txn->count; i++) {
        const struct queued *queued = &txn->queue[i];
        const struct run run =
            run_of(queued->command, queued->words, queued->argv, queued->argc);

        if (i % KEYSPACE_AHEAD_MAX == 0) {
            look_ahead(exec, txn, i);
        }
        execute_prepare(&req, &run, 0);
        if (queued->command->keys.first > 0 && queued->argc > 1) {
            req.key = request_key(&req, (size_t)queued->command->keys.first);
        }
        if (queued->command->lock == LOCK_WALK &&
            exec->worker->now_ns - started_ns > WALKS_NS) {
            execute_refuse(&req, ERR_EXEC_WALK);
            continue;
        }
        if (is_no_longer_admitted(&req)) {
            execute_refuse(&req, refusal_of_writes(req.service));
            continue;
        }
        if (rights_are_limited(req.session) && !req.obey) {
            enum err err = rights_check(&req);

            if (err != OK) {
                execute_refuse(&req, err);
                continue;
            }
        }
        (void)execute_locked(&req);
        execute_count(&req, &run, 1);
    }
}

/* Returns whether two one-item commands follow each other on one key: at most
 * one of them creates the filter. */
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
                ? effect_words_bytes(queued->argv, queued->argc)
                : effect_bytes(queued->command, queued->argv, queued->argc);
    }
    return bytes;
}

/* Checks whether the queued writes are admitted, and reserves space for all
 * their effects. */
static enum err
prepare_writes(struct request *req, const struct txn *txn)
{
    enum err err = req->obey ? OK : refusal_of_writes(req->service);

    if (err != OK || req->service->journal == NULL) {
        return err;
    }
    return effect_open(req->worker, queue_effect_bytes(txn));
}

/* Runs the queue if the watched keys are unchanged. Under the locks. */
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
    const struct slice name = req->argv[0];
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
    /* admit_now asked this in a section of the gate, which EXEC has left. */
    if (route_is_on(req)) {
        err = route_check(req);
    }
    if (err == OK && !req->obey) {
        err = refusal_of_data(req->service, ~txn->lacking);
    }
    if (err == OK && (txn->flags & CMD_WRITE) != 0) {
        err = prepare_writes(req, txn);
    }
    if (err == OK) {
        lock_set_lock(&locks, worker);
        compare_and_run(req, txn);
        effect_close(worker, &locks, true, &name);
        observe_close(worker);
        lock_set_unlock(&locks, worker);
    }
    lock_set_leave(&locks, worker);
    if (err == ERR_AGAIN) {
        return err;
    }
    if (route_is_refusal(err)) {
        route_count(err);
        txn_end(req->session);
        return err;
    }
    if (err != OK) {
        char text[ERROR_TEXT_MAX];

        execute_error_text(worker, err, text, sizeof(text));
        txn_abort(req, err, text);
    } else {
        txn_end(req->session);
    }
    return OK;
}
