/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue is an array of commands, each with its arguments in one
 * allocation; the watches are a list.
 */
#include "engine/txn.h"

#include "access/handlers.h"
#include "base/mem.h"
#include "base/metrics.h"

#include <stdio.h>

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

void
txn_unwatch(struct session *session)
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
    CHECK(txn->bytes < SIZE_MAX / 2); /* it did not fall below zero */
    txn->watch_count = 0;
    atomic_store(&session->multi_bytes, txn->bytes);
    atomic_store(&session->watch_count, 0);
    metric_add(METRIC_WATCHING_CLIENTS, -1);
}

/* Counts clients in MULTI; a session that replays a log is no client. */
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
    txn_unwatch(session);
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

/* ---- begin -------------------------------------------------------------- */

static enum err
need_txn(struct session *session)
{
    if (session->txn == NULL) {
        session->txn = mem_try_zalloc(sizeof(*session->txn));
    }
    return session->txn != NULL ? OK : ERR_NOMEM;
}

enum err
txn_begin(struct session *session)
{
    enum err err = need_txn(session);

    if (err == OK) {
        CHECK(!session->txn->open);
        session->txn->open = true;
        atomic_store(&session->multi_count, 0);
        count_open(session, 1);
    }
    return err;
}

/* ---- queueing ------------------------------------------------------------ */

/* Returns the memory of argc slices and the bytes that they point to, as the
 * allocator rounds it. Nothing can overflow, since the bytes are in memory
 * already. */
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

/* Makes room in the queue for one more command. bytes: the memory of its
 * arguments. */
static enum err
make_queue_room(const struct request *req, size_t bytes)
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
    enum err err;

    CHECK(txn != NULL && txn->open);
    err = make_queue_room(req, bytes);
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

/* ---- watches ------------------------------------------------------------ */

enum err
txn_watch(struct request *req, const struct key *key)
{
    struct txn *txn;
    size_t bytes = sizeof(struct watch) + key->name.len;
    struct watch *watch;
    enum err err = need_txn(req->session);

    if (err != OK) {
        return err;
    }
    txn = req->session->txn;
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
