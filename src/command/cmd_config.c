/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CONFIG GET SET RESETSTAT over the option table. SET and RESETSTAT run under
 * the raised gate: no other loop is inside a section meanwhile.
 */
#include "base/glob.h"
#include "base/metrics.h"
#include "command/request.h"

/* Under which name GET shows a row: as a pattern without special bytes spells
 * it, since clients look for what they wrote; else as the table does. An empty
 * slice if no pattern takes it. */
static struct slice
name_for(const struct conf_row *row, const struct slice *patterns, size_t count)
{
    struct slice name = slice_of(row->name);

    for (size_t i = 0; i < count; i++) {
        if (glob_is_plain(patterns[i])) {
            if (slice_is_word(patterns[i], row->name)) {
                return patterns[i];
            }
        } else if (glob_match(patterns[i], name, true)) {
            return name;
        }
    }
    return (struct slice){ NULL, 0 };
}

enum err
cmd_config_get(struct request *req)
{
    struct slice names[CONF_OPTION_COUNT];
    struct buf value = { 0 };
    size_t count = 0;

    for (size_t i = 2; i < req->argc; i++) {
        if (!glob_is_fair(req->argv[i])) {
            return ERR_PATTERN_LONG;
        }
    }
    for (unsigned i = 0; i < CONF_OPTION_COUNT; i++) {
        names[i] = name_for(&conf_table[i], req->argv + 2, req->argc - 2);
        count += names[i].len > 0;
    }
    reply_map(req->reply, count);
    for (unsigned i = 0; i < CONF_OPTION_COUNT; i++) {
        if (names[i].len > 0) {
            value.len = 0;
            conf_get(req->service->conf, &conf_table[i], &value);
            reply_bulk(req->reply, names[i]);
            reply_bulk(req->reply, buf_slice(&value));
        }
    }
    if (value.failed) {
        req->reply->buf->failed = true;
    }
    buf_free(&value);
    return OK;
}

enum err
cmd_config_set(struct request *req)
{
    struct service *service = req->service;
    struct conf_changes changes;
    struct conf_error error;

    if (req->argc % 2 != 0) {
        return ERR_SYNTAX;
    }
    if (!conf_set_many(service->conf, req->argv + 2, (req->argc - 2) / 2,
                       &changes, &error)) {
        return request_fail(req, ERR_CUSTOM, "%s", error.text);
    }
    service->conf_changed(service->ctx, &changes);
    reply_ok(req->reply);
    return OK;
}

enum err
cmd_config_resetstat(struct request *req)
{
    metric_reset_counters();
    stats_reset(req->service->stats);
    reply_ok(req->reply);
    return OK;
}
