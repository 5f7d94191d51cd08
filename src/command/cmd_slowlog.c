/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SLOWLOG over admin/slowlog.
 */
#include "admin/slowlog.h"

#include "command/help.h"
#include "command/request.h"

static void
show_total(void *ctx, size_t entries)
{
    reply_array(ctx, entries);
}

static void
show_entry(void *ctx, const struct slowlog_entry *entry)
{
    struct reply *reply = ctx;

    reply_array(reply, 6);
    reply_int(reply, (int64_t)entry->id);
    reply_int(reply, (int64_t)entry->time_s);
    reply_int(reply, (int64_t)entry->took_us);
    reply_array(reply, entry->argc);
    for (size_t i = 0; i < entry->argc; i++) {
        reply_bulk(reply, entry->argv[i]);
    }
    reply_bulk(reply, entry->addr);
    reply_bulk(reply, entry->name);
}

enum err
cmd_slowlog_get(struct request *req)
{
    const struct slowlog_visitor visitor = { show_total, show_entry,
                                             req->reply };
    int64_t count = 10;

    if (args_left(&req->args) > 1) {
        return help_wrong_subcommand(req);
    }
    if (args_left(&req->args) == 1 &&
        (!slice_to_i64(args_bytes(&req->args), &count) || count < -1)) {
        return request_fail(req, ERR_CUSTOM,
                            "count should be greater than or equal to -1");
    }
    slowlog_visit(req->service->slowlog,
                  count < 0 ? UINT64_MAX : (uint64_t)count, &visitor);
    return OK;
}

enum err
cmd_slowlog_len(struct request *req)
{
    reply_int(req->reply, (int64_t)slowlog_length(req->service->slowlog));
    return OK;
}

enum err
cmd_slowlog_reset(struct request *req)
{
    slowlog_reset(req->service->slowlog);
    reply_ok(req->reply);
    return OK;
}
