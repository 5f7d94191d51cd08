/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TIME SHUTDOWN MODULE. They run on the loop of the connection.
 */
#include "access/handlers.h"
#include "base/clock.h"
#include "base/mem.h"
#include "engine/audit.h"
#include "engine/request.h"
#include "info/info.h"

#include <inttypes.h>
#include <stdio.h>

enum err
cmd_time(struct request *req)
{
    uint64_t now_us = clock_wall_us();
    char text[24];

    reply_array(req->reply, 2);
    (void)snprintf(text, sizeof(text), "%" PRIu64, now_us / 1000000);
    reply_bulk_text(req->reply, text);
    (void)snprintf(text, sizeof(text), "%" PRIu64, now_us % 1000000);
    reply_bulk_text(req->reply, text);
    return OK;
}

static enum err
parse_shutdown(struct args *args, unsigned *ret_flags, bool *ret_aborts)
{
    static const struct {
        const char *word;
        unsigned flag;
    } words[] = {
        { "SAVE", SHUTDOWN_SAVE },
        { "NOSAVE", SHUTDOWN_NOSAVE },
        { "NOW", SHUTDOWN_NOW },
        { "FORCE", SHUTDOWN_FORCE },
    };
    unsigned flags = 0;

    while (args_left(args) > 0) {
        size_t i = 0;

        while (i < 4 && !args_word(args, words[i].word)) {
            i++;
        }
        if (i < 4) {
            flags |= words[i].flag;
        } else if (args_word(args, "ABORT")) {
            *ret_aborts = true;
        } else {
            return ERR_SYNTAX;
        }
    }
    *ret_flags = flags;
    return (flags & SHUTDOWN_SAVE && flags & SHUTDOWN_NOSAVE) ||
                   (*ret_aborts && flags != 0)
               ? ERR_SYNTAX
               : OK;
}

static enum err
abort_shutdown(struct request *req)
{
    struct service *service = req->service;
    int ends = SERVICE_ENDS;

    if (!atomic_compare_exchange_strong(&service->ending, &ends,
                                        SERVICE_RESUMES)) {
        return request_fail(req, ERR_CUSTOM, "No shutdown in progress.");
    }
    service->shutdown_abort(service->ctx);
    reply_simple(req->reply, "OK");
    return OK;
}

/* A successful shutdown has no reply: the connection ends. The client waits for
 * that, or for the error that the server could not save or that another client
 * has aborted the shutdown. */
enum err
cmd_shutdown(struct request *req)
{
    struct service *service = req->service;
    uint64_t *failures = request_resumed(req); /* at the first call */
    uint64_t now = atomic_load(&service->shutdown_failures);
    unsigned flags = 0;
    bool aborts = false;
    enum err err = parse_shutdown(&req->args, &flags, &aborts);

    if (err != OK) {
        return err;
    }
    if (aborts) {
        return abort_shutdown(req);
    }
    if (failures == NULL) {
        failures = mem_try_alloc(sizeof(*failures));
        if (failures == NULL) {
            return ERR_NOMEM;
        }
        *failures = now;
        audit_note(req, OK);
        service->shutdown(service->ctx, flags);
    } else if (*failures != now) {
        return request_fail(req, ERR_CUSTOM,
                            "Errors trying to SHUTDOWN. Check logs.");
    }
    request_wait(req, failures, mem_free);
    return ERR_AGAIN;
}

enum err
cmd_module_list(struct request *req)
{
    info_reply_modules(req->reply);
    return OK;
}
