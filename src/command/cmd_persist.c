/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SAVE BGSAVE LASTSAVE BGREWRITEAOF. They run on the loop of their connection
 * and request work of loop 0 and the thread that saves. Only their own client
 * waits.
 */
#include "access/handlers.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/run_clock.h"
#include "engine/request.h"
#include "persist/figures.h"
#include "persist/persist.h"

static enum err
no_persistence(struct request *req)
{
    return request_fail(req, ERR_CUSTOM, "this server has no persistence");
}

/* Requests a snapshot. Returns the state for request_wait, or NULL without
 * memory. */
static uint64_t *
ask_save(struct request *req)
{
    uint64_t *ticket = mem_try_alloc(sizeof(*ticket));

    if (ticket != NULL) {
        *ticket = persist_ask(req->service->persist, PERSIST_SAVE);
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

/* Requests the same snapshot as BGSAVE, and replies when it is written. */
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
    switch (persist_outcome(persist, PERSIST_SAVE, *ticket)) {
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

/* Replies when loop 0 has begun the snapshot, at its next tick, so that
 * "started" is true, and INFO agrees. */
static enum err
await_start(struct request *req, uint64_t *ticket)
{
    struct persist *persist = req->service->persist;
    enum persist_outcome outcome =
        persist_outcome(persist, PERSIST_SAVE, *ticket);
    struct persist_info info;

    persist_get_info(persist, &info);
    if (outcome == PERSIST_FAILED) {
        return save_failed(req);
    }
    if (outcome == PERSIST_DONE || info.saving) {
        reply_simple(req->reply, "Background saving started");
        return OK;
    }
    if (info.rewriting) { /* a rewrite has begun first */
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
        (void)persist_ask(persist, PERSIST_SAVE);
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

/* The counters when a rewrite was requested, and when to stop waiting. */
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
        (void)persist_ask(req->service->persist, PERSIST_REWRITE);
        return rewrite_scheduled(req);
    }
    asked = mem_try_alloc(sizeof(*asked));
    if (asked == NULL) {
        return ERR_NOMEM;
    }
    *asked = (struct asked){ info->rewrites, info->rewrite_failures,
                             run_clock_ns() + START_NS_MAX };
    (void)persist_ask(req->service->persist, PERSIST_REWRITE);
    request_wait(req, asked, mem_free);
    return ERR_AGAIN;
}

/* Replies when the rewrite has begun, as BGSAVE does. If it cannot begin soon,
 * because of a fault or a snapshot, the reply is "scheduled". */
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
    if (info.saving || run_clock_ns() >= asked->deadline_ns) {
        return rewrite_scheduled(req);
    }
    request_wait(req, asked, mem_free);
    return ERR_AGAIN;
}
