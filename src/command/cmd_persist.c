/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SAVE BGSAVE LASTSAVE BGREWRITEAOF WAITAOF WAIT. The work is loop 0's and a
 * child's: these ask for it, and their connection may wait for it, which holds
 * nobody else up. Runs on the loop of the connection.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "command/request.h"
#include "persist/persist.h"

static enum err
no_persistence(struct request *req)
{
    return request_fail(req, ERR_CUSTOM, "this server has no persistence");
}

/* Asks for a snapshot; the state for request_wait, or NULL without memory. */
static uint64_t *
ask_save(struct request *req)
{
    uint64_t *ticket = mem_try_alloc(sizeof(*ticket));

    if (ticket != NULL) {
        *ticket = persist_ask_save(req->service->persist);
    }
    return ticket;
}

static enum err
save_failed(struct request *req)
{
    return request_fail(req, ERR_CUSTOM,
                        "the snapshot could not be written; see the server's "
                        "log");
}

static enum err
begin_save(struct request *req)
{
    uint64_t *ticket = ask_save(req);

    if (ticket == NULL) {
        return ERR_NOMEM;
    }
    request_wait(req, ticket, mem_free);
    return ERR_AGAIN;
}

static enum err
already_saving(struct request *req)
{
    return request_fail(req, ERR_CUSTOM, "Background save already in progress");
}

/* A client may wait for the end of what BGSAVE does; nobody else has to. */
enum err
cmd_save(struct request *req)
{
    struct persist *persist = req->service->persist;
    uint64_t *ticket = request_resumed(req);
    struct persist_info info;

    if (persist == NULL) {
        return no_persistence(req);
    }
    if (ticket == NULL) {
        persist_get_info(persist, &info);
        return info.saving ? already_saving(req) : begin_save(req);
    }
    switch (persist_save_outcome(persist, *ticket)) {
    case PERSIST_DONE:
        reply_ok(req->reply);
        return OK;
    case PERSIST_FAILED:
        return save_failed(req);
    case PERSIST_PENDING:
        break;
    }
    request_wait(req, ticket, mem_free);
    return ERR_AGAIN;
}

/* What is asked for begins with loop 0's next tick; the client waits for that,
 * so that "started" is true and INFO says so too. */
static enum err
await_start(struct request *req, uint64_t *ticket)
{
    struct persist *persist = req->service->persist;
    enum persist_outcome outcome = persist_save_outcome(persist, *ticket);
    struct persist_info info;

    persist_get_info(persist, &info);
    if (outcome == PERSIST_FAILED) {
        return save_failed(req);
    }
    if (outcome == PERSIST_DONE || info.saving) {
        reply_simple(req->reply, "Background saving started");
        return OK;
    }
    if (info.rewriting) { /* it was faster */
        reply_simple(req->reply, "Background saving scheduled");
        return OK;
    }
    request_wait(req, ticket, mem_free);
    return ERR_AGAIN;
}

static enum err
begin_background_save(struct request *req, bool schedule)
{
    struct persist *persist = req->service->persist;
    bool in_exec = !request_may_pause(req);
    struct persist_info info;

    persist_get_info(persist, &info);
    if (info.saving) {
        return already_saving(req);
    }
    if (info.rewriting && !schedule && !in_exec) {
        return request_fail(
            req, ERR_CUSTOM,
            "Another child process is active (AOF?): can't BGSAVE right now. "
            "Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever "
            "possible.");
    }
    if (info.rewriting || in_exec) {
        (void)persist_ask_save(persist);
        reply_simple(req->reply, "Background saving scheduled");
        return OK;
    }
    return begin_save(req);
}

enum err
cmd_bgsave(struct request *req)
{
    bool schedule = args_word(&req->args, "SCHEDULE");
    enum err err = args_end(&req->args);

    if (err != OK) {
        return err;
    }
    if (req->service->persist == NULL) {
        return no_persistence(req);
    }
    return request_resumed(req) != NULL ? await_start(req, request_resumed(req))
                                        : begin_background_save(req, schedule);
}

enum err
cmd_lastsave(struct request *req)
{
    struct persist_info info;

    if (req->service->persist == NULL) {
        return no_persistence(req);
    }
    persist_get_info(req->service->persist, &info);
    reply_int(req->reply, (int64_t)info.last_save_s);
    return OK;
}

/* ---- BGREWRITEAOF -------------------------------------------------------- */

/* What was true when a rewrite was asked for. */
struct asked {
    uint64_t rewrites, failures;
    uint64_t deadline_ns;
};

static enum err
rewrite_scheduled(struct request *req)
{
    reply_simple(req->reply, "Background append only file rewriting scheduled");
    return OK;
}

static enum err
begin_rewrite(struct request *req, const struct persist_info *info)
{
    enum { START_NS_MAX = 1000000000 };
    struct asked *asked;

    if (info->rewriting) {
        return request_fail(req, ERR_CUSTOM,
                            "Background append only file rewriting already in "
                            "progress");
    }
    if (!req->service->conf->appendonly) {
        return request_fail(req, ERR_CUSTOM,
                            "There is no journal to rewrite: appendonly is "
                            "disabled.");
    }
    if (info->saving || !request_may_pause(req)) {
        (void)persist_ask_rewrite(req->service->persist);
        return rewrite_scheduled(req);
    }
    asked = mem_try_alloc(sizeof(*asked));
    if (asked == NULL) {
        return ERR_NOMEM;
    }
    *asked = (struct asked){ info->rewrites, info->rewrite_failures,
                             clock_mono_ns() + START_NS_MAX };
    (void)persist_ask_rewrite(req->service->persist);
    request_wait(req, asked, mem_free);
    return ERR_AGAIN;
}

/* The client waits for the beginning, as with BGSAVE; when something is in the
 * way (a fault, a snapshot that came first) not for long. */
enum err
cmd_bgrewriteaof(struct request *req)
{
    struct asked *asked = request_resumed(req);
    struct persist_info info;

    if (req->service->persist == NULL) {
        return no_persistence(req);
    }
    persist_get_info(req->service->persist, &info);
    if (asked == NULL) {
        return begin_rewrite(req, &info);
    }
    if (info.rewriting || info.rewrites != asked->rewrites ||
        info.rewrite_failures != asked->failures) {
        reply_simple(req->reply,
                     "Background append only file rewriting started");
        return OK;
    }
    if (info.saving || clock_mono_ns() >= asked->deadline_ns) {
        return rewrite_scheduled(req);
    }
    request_wait(req, asked, mem_free);
    return ERR_AGAIN;
}

/* ---- WAITAOF ------------------------------------------------------------- */

struct wait {
    int64_t local, replicas, timeout_ms;
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
    if (*ret_timeout_ms > INT64_MAX / 1000000 / 2) { /* in ns, with the clock */
        return request_fail(req, ERR_CUSTOM, "timeout is out of range");
    }
    return OK;
}

static enum err
parse_wait(struct request *req, struct wait *how)
{
    struct slice replicas;

    how->local = args_i64(&req->args);
    if (req->args.err != OK) {
        return req->args.err;
    }
    if (how->local < 0 || how->local > 1) {
        return request_fail(req, ERR_CUSTOM,
                            "value is out of range, value must between 0 and "
                            "1");
    }
    replicas = args_bytes(&req->args);
    if (!slice_to_i64(replicas, &how->replicas) || how->replicas < 0) {
        return request_fail(req, ERR_CUSTOM,
                            "value is out of range, must be positive");
    }
    return parse_timeout(req, args_bytes(&req->args), &how->timeout_ms);
}

/* Whether what this connection wrote is on the disk. While a journal is only
 * being built nothing is: what was written before it was switched on has no
 * position, and is durable with its base. */
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
    return status.on && !status.building &&
           journal_synced(journal) >= atomic_load(&req->session->written);
}

static uint64_t *
deadline_after(int64_t timeout_ms)
{
    uint64_t *deadline_ns = mem_try_alloc(sizeof(*deadline_ns));

    if (deadline_ns != NULL) {
        *deadline_ns = timeout_ms == 0
                           ? UINT64_MAX
                           : clock_mono_ns() + (uint64_t)timeout_ms * 1000000U;
    }
    return deadline_ns;
}

/* There are no replicas yet: who wants some waits until the timeout. */
enum err
cmd_waitaof(struct request *req)
{
    uint64_t *deadline_ns = request_resumed(req);
    enum session_block ended = SESSION_RUNS;
    struct wait how = { 0 };
    enum err err = parse_wait(req, &how);
    bool local;

    if (err != OK) {
        return err;
    }
    if (how.local > 0 && !req->service->conf->appendonly) {
        return request_fail(req, ERR_CUSTOM,
                            "WAITAOF cannot be used when numlocal is set but "
                            "appendonly is disabled.");
    }
    if (deadline_ns != NULL) {
        ended = request_unblocked(req);
    }
    if (ended == SESSION_UNBLOCK_ERROR) {
        return ERR_UNBLOCKED;
    }
    local = is_on_disk(req);
    if (((local || how.local == 0) && how.replicas == 0) ||
        !request_may_pause(req) || ended == SESSION_UNBLOCK_TIMEOUT ||
        (deadline_ns != NULL && clock_mono_ns() >= *deadline_ns)) {
        reply_array(req->reply, 2);
        reply_int(req->reply, local);
        reply_int(req->reply, 0);
        return OK;
    }
    if (deadline_ns == NULL) {
        deadline_ns = deadline_after(how.timeout_ms);
    }
    if (deadline_ns == NULL) {
        return ERR_NOMEM;
    }
    if (how.local > 0 &&
        req->service->conf->appendfsync == CONF_APPENDFSYNC_NO) {
        journal_want_sync(persist_journal(req->service->persist),
                          atomic_load(&req->session->written));
    }
    request_block(req, deadline_ns, mem_free);
    return ERR_AGAIN;
}

/* ---- WAIT ---------------------------------------------------------------- */

/* The same without the disk. */
enum err
cmd_wait(struct request *req)
{
    uint64_t *deadline_ns = request_resumed(req);
    enum session_block ended =
        deadline_ns != NULL ? request_unblocked(req) : SESSION_RUNS;
    int64_t replicas = args_i64(&req->args);
    int64_t timeout_ms = 0;
    enum err err = req->args.err;

    if (err == OK) {
        err = parse_timeout(req, args_bytes(&req->args), &timeout_ms);
    }
    if (err != OK) {
        return err;
    }
    if (ended == SESSION_UNBLOCK_ERROR) {
        return ERR_UNBLOCKED;
    }
    if (replicas <= 0 || !request_may_pause(req) ||
        ended == SESSION_UNBLOCK_TIMEOUT ||
        (deadline_ns != NULL && clock_mono_ns() >= *deadline_ns)) {
        reply_int(req->reply, 0);
        return OK;
    }
    if (deadline_ns == NULL) {
        deadline_ns = deadline_after(timeout_ms);
    }
    if (deadline_ns == NULL) {
        return ERR_NOMEM;
    }
    request_block(req, deadline_ns, mem_free);
    return ERR_AGAIN;
}
