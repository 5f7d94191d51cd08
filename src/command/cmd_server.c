/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TIME SHUTDOWN MODULE MEMORY, and what is refused because it belongs to a
 * cluster. Runs on the loop of the connection.
 */
#include "base/clock.h"
#include "command/info.h"
#include "command/request.h"

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

struct shutdown {
    bool save, nosave, now, force, abort;
};

static enum err
parse_shutdown(struct args *args, struct shutdown *how)
{
    while (args_left(args) > 0) {
        if (args_word(args, "SAVE")) {
            how->save = true;
        } else if (args_word(args, "NOSAVE")) {
            how->nosave = true;
        } else if (args_word(args, "NOW")) {
            how->now = true;
        } else if (args_word(args, "FORCE")) {
            how->force = true;
        } else if (args_word(args, "ABORT")) {
            how->abort = true;
        } else {
            return ERR_SYNTAX;
        }
    }
    if ((how->save && how->nosave) ||
        (how->abort && (how->save || how->nosave || how->now || how->force))) {
        return ERR_SYNTAX;
    }
    return OK;
}

/* There is nothing to wait for or to save, so that NOW and FORCE change
 * nothing and there is never a shutdown under way to abort. A shutdown has no
 * reply: the connection ends. */
enum err
cmd_shutdown(struct request *req)
{
    struct shutdown how = { false };
    enum err err = parse_shutdown(&req->args, &how);

    if (err != OK) {
        return err;
    }
    if (how.abort) {
        return request_fail(req, ERR_CUSTOM, "No shutdown in progress.");
    }
    if (how.save) {
        return request_fail(req, ERR_CUSTOM,
                            "SHUTDOWN SAVE is not possible: nothing can be "
                            "saved yet. SHUTDOWN or SHUTDOWN NOSAVE ends the "
                            "server and loses all data.");
    }
    req->session->closing = true;
    req->service->shutdown(req->service->ctx);
    return OK;
}

enum err
cmd_module_list(struct request *req)
{
    info_reply_modules(req->reply);
    return OK;
}

/* SAMPLES is for values made of parts; a filter knows its size. */
static enum err
parse_samples(struct args *args)
{
    while (args_left(args) > 0) {
        if (args_left(args) < 2 || !args_word(args, "SAMPLES")) {
            return ERR_SYNTAX;
        }
        if (args_i64(args) < 0) {
            return ERR_SYNTAX;
        }
    }
    return args_end(args);
}

enum err
cmd_memory_usage(struct request *req)
{
    struct entry *entry;
    enum err err;

    (void)args_bytes(&req->args); /* the key */
    err = parse_samples(&req->args);
    if (err != OK) {
        return err;
    }
    entry = keyspace_find(req->keyspace, &req->key, req->now_ms);
    if (entry == NULL) {
        reply_null(req->reply);
    } else {
        reply_int(req->reply, (int64_t)(keyspace_entry_bytes(entry) +
                                        bloom_size(entry->bloom)));
    }
    return OK;
}

enum err
cmd_cluster_disabled(struct request *req)
{
    (void)req;
    return ERR_CLUSTER_DISABLED;
}
