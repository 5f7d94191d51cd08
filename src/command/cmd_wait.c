/* SPDX-License-Identifier: BSD-3-Clause
 *
 * WAIT and WAITAOF wait until replicas, and disks, have what this connection
 * wrote. A replica counts by its own acknowledgements. Nothing counts once the
 * server has become a replica, since positions then belong to another log. Only
 * this connection waits. Runs on its loop.
 */
#include "access/handlers.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/run_clock.h"
#include "engine/request.h"
#include "journal/journal.h"
#include "persist/persist.h"
#include "repl/status.h"

static const uint64_t ASK_EVERY_NS = 100000000;

/* The arguments. */
struct wanted {
    int64_t local, replicas, timeout_ms;
    bool synced; /* replicas count once their disks have the writes */
};

/* The state of a waiting command. */
struct waiting {
    uint64_t deadline_ns; /* UINT64_MAX: none */
    uint64_t asked_ns;    /* when replicas were asked last how far they are */
    uint64_t epoch;       /* of the role at the beginning */
};

static enum err
parse_timeout(struct request *req, struct slice text, int64_t *ret_timeout_ms)
{
    if (!slice_to_i64(text, ret_timeout_ms)) {
        return request_fail(req, ERR_CUSTOM,
                            "timeout is not an integer or out of range");
    }
    if (*ret_timeout_ms < 0) {
        return request_fail(req, ERR_CUSTOM, "timeout is negative");
    }
    if (*ret_timeout_ms > INT64_MAX / 1000000 / 2) { /* deadline_ns must fit */
        return request_fail(req, ERR_CUSTOM, "timeout is out of range");
    }
    return OK;
}

static enum err
parse_wait(struct request *req, struct wanted *wanted)
{
    wanted->replicas = args_i64(&req->args);
    if (req->args.err != OK) {
        return req->args.err;
    }
    return parse_timeout(req, args_bytes(&req->args), &wanted->timeout_ms);
}

static enum err
parse_waitaof(struct request *req, struct wanted *wanted)
{
    struct slice replicas;

    wanted->synced = true;
    wanted->local = args_i64(&req->args);
    if (req->args.err != OK) {
        return req->args.err;
    }
    if (wanted->local < 0 || wanted->local > 1) {
        return request_fail(req, ERR_CUSTOM,
                            "value is out of range, value must between 0 and "
                            "1");
    }
    replicas = args_bytes(&req->args);
    if (!slice_to_i64(replicas, &wanted->replicas) || wanted->replicas < 0) {
        return request_fail(req, ERR_CUSTOM,
                            "value is out of range, must be positive");
    }
    return parse_timeout(req, args_bytes(&req->args), &wanted->timeout_ms);
}

/* ---- counting ------------------------------------------------------------ */

/* Returns whether what this connection wrote is on the disk. It is not while a
 * new journal is being built: earlier writes have no position and become
 * durable with the base of that journal. */
static bool
is_on_disk(const struct request *req)
{
    struct persist *persist = req->service->persist;
    struct journal *journal;
    struct journal_status status;

    if (persist == NULL || !req->service->conf->appendonly) {
        return false;
    }
    journal = persist_journal(persist);
    journal_get_status(journal, &status);
    return status.on && !status.building && !status.holding &&
           journal_synced(journal) >= atomic_load(&req->session->written);
}

static int64_t
count_replicas(const struct request *req, bool synced)
{
    struct status *status = req->service->status;
    uint64_t position = atomic_load(&req->session->written);

    if (status == NULL) {
        return 0;
    }
    return (int64_t)(synced ? status_count_synced(status, position)
                            : status_count_acked(status, position));
}

/* ---- waiting ------------------------------------------------------------- */

static struct waiting *
begin_wait(const struct request *req, int64_t timeout_ms)
{
    struct waiting *waiting = mem_try_alloc(sizeof(*waiting));

    if (waiting != NULL) {
        *waiting = (struct waiting){
            .deadline_ns = timeout_ms == 0 ? UINT64_MAX
                                           : run_clock_ns() +
                                                 (uint64_t)timeout_ms * 1000000,
            .epoch = req->service->role.epoch,
        };
    }
    return waiting;
}

/* Asks replicas for acknowledgements, which they otherwise send once a second.
 * Asks again every ASK_EVERY_NS, for replicas that connect meanwhile. */
static void
ask_for_acks(const struct request *req, struct waiting *waiting)
{
    const struct service *service = req->service;
    uint64_t now_ns = clock_mono_ns();

    if (service->replication.want_acks != NULL &&
        now_ns - waiting->asked_ns >= ASK_EVERY_NS) {
        waiting->asked_ns = now_ns;
        service->replication.want_acks(service->replication.ctx,
                                       atomic_load(&req->session->written));
    }
}

static enum err
go_on_waiting(struct request *req, const struct wanted *wanted,
              struct waiting *waiting)
{
    if (waiting == NULL) {
        waiting = begin_wait(req, wanted->timeout_ms);
    }
    if (waiting == NULL) {
        return ERR_NOMEM;
    }
    if (wanted->replicas > 0) {
        ask_for_acks(req, waiting);
    }
    if (wanted->local > 0 &&
        req->service->conf->appendfsync == CONF_APPENDFSYNC_NO) {
        journal_want_sync(persist_journal(req->service->persist),
                          atomic_load(&req->session->written));
    }
    request_block(req, waiting, mem_free);
    return ERR_AGAIN;
}

static void
answer_wait(struct request *req, const struct wanted *wanted, bool local,
            int64_t replicas)
{
    if (wanted->synced) {
        reply_array(req->reply, 2);
        reply_int(req->reply, local);
    }
    reply_int(req->reply, replicas);
}

/* If the role has changed meanwhile, the client gets an error and is
 * disconnected, as in Redis: its positions mean something else now. */
static enum err
check_role(struct request *req, const struct waiting *waiting)
{
    if (waiting != NULL && waiting->epoch != req->service->role.epoch) {
        req->session->closing = true;
        return ERR_ROLE_CHANGED;
    }
    return atomic_load(&req->session->written) == UINT64_MAX
               ? ERR_WRITES_MAY_BE_LOST
               : OK;
}

static enum err
await(struct request *req, const struct wanted *wanted)
{
    struct waiting *waiting = request_resumed(req);
    enum session_block ended =
        waiting != NULL ? request_unblocked(req) : SESSION_RUNS;
    enum err err = check_role(req, waiting);
    int64_t replicas;
    bool local;

    if (err != OK || ended == SESSION_UNBLOCK_ERROR) {
        return err != OK ? err : ERR_UNBLOCKED;
    }
    local = wanted->synced && is_on_disk(req);
    replicas = count_replicas(req, wanted->synced);
    if ((local >= wanted->local && replicas >= wanted->replicas) ||
        !request_may_pause(req) || ended == SESSION_UNBLOCK_TIMEOUT ||
        (waiting != NULL && run_clock_ns() >= waiting->deadline_ns)) {
        answer_wait(req, wanted, local, replicas);
        return OK;
    }
    return go_on_waiting(req, wanted, waiting);
}

/* ---- handlers ------------------------------------------------------------ */

static bool
follows(const struct request *req)
{
    return req->service->role.replica && request_resumed(req) == NULL;
}

enum err
cmd_wait(struct request *req)
{
    struct wanted wanted = { 0 };
    enum err err;

    if (follows(req)) {
        return request_fail(
            req, ERR_CUSTOM, "%s",
            "WAIT cannot be used with replica instances. Please also note that "
            "since Redis 4.0 if a replica is configured to be writable (which "
            "is not the default) writes to replicas are just local and are not "
            "propagated.");
    }
    err = parse_wait(req, &wanted);
    return err == OK ? await(req, &wanted) : err;
}

enum err
cmd_waitaof(struct request *req)
{
    struct wanted wanted = { 0 };
    enum err err = parse_waitaof(req, &wanted);

    if (err != OK) {
        return err;
    }
    if (follows(req)) {
        return request_fail(
            req, ERR_CUSTOM, "%s",
            "WAITAOF cannot be used with replica instances. Please also note "
            "that writes to replicas are just local and are not propagated.");
    }
    if (wanted.local > 0 && !req->service->conf->appendonly) {
        return request_fail(req, ERR_CUSTOM,
                            "WAITAOF cannot be used when numlocal is set but "
                            "appendonly is disabled.");
    }
    return await(req, &wanted);
}
