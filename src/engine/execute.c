/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The clock is read when runs are counted, once for all runs of one count.
 */
#include "engine/execute.h"

#include "base/clock.h"
#include "base/longest.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "engine/audit.h"
#include "engine/effect.h"
#include "engine/observe.h"
#include "engine/route.h"
#include "engine/slow.h"
#include "engine/txn.h"

#include <stdio.h>

enum {
    ERROR_REPLY_MAX = ERROR_TEXT_MAX + 64, /* prefix and line end */
    REFUSALS_MAX = 100, /* before the password, then the connection closes */
};

void
execute_prepare(struct request *req, const struct run *run, uint32_t index)
{
    struct worker *worker = req->worker;
    const struct slice *argv = run_words(run, index);

    req->command = run->command;
    req->session = worker->session;
    req->obey = worker->session->obey;
    req->argv = argv;
    req->argc = run->argc;
    req->args = args_of(argv + run->words, run->argc - run->words);
    req->reply = worker->reply;
    req->now_ms = worker->now_ms;
    req->dirty = 0;
    req->counted = 0;
    req->rights = 0;
    req->effect.kind = EFFECT_VERBATIM;
    req->effect.argc = 0;
}

/* ---- counting ------------------------------------------------------------ */

/* Returns the time since the last count, and lets the next span begin now. */
static inline uint64_t
end_span(struct request *req)
{
    struct worker *worker = req->worker;
    uint64_t now_ns = clock_mono_ns();
    uint64_t took_ns = now_ns - worker->now_ns;

    slow_note_longest(req, now_ns);
    worker->now_ns = now_ns;
    return took_ns;
}

__attribute__((noinline, cold)) static void
note_slow(struct request *req, const struct run *runs, size_t count,
          uint64_t each_ns)
{
    bool several = count > 1 || runs->count > 1;

    for (const struct run *run = runs; run < runs + count; run++) {
        for (uint32_t i = 0; i < run->count; i++) {
            if (several) {
                execute_prepare(req, run, i);
            }
            slow_note(req, each_ns);
        }
    }
}

void
execute_count(struct request *req, const struct run *runs, size_t count)
{
    struct worker *worker = req->worker;
    unsigned id = command_id(req->command);
    uint64_t commands = runs->count;
    uint64_t each_ns;

    if (worker->alone) { /* a replay repeats what was counted before */
        worker->held.since_ns = 0;
        return;
    }
    for (size_t i = 1; i < count; i++) {
        commands += runs[i].count;
    }
    each_ns = end_span(req);
    if (commands > 1) {
        each_ns /= commands;
    }
    stats_took(worker->stats, id, commands, commands * each_ns);
    if (__builtin_expect(req->session->worked_ns != 0, 0) && !worker->in_exec) {
        each_ns += req->session->worked_ns;
        req->session->worked_ns = 0;
    }
    stats_lasted(worker->stats, id, commands, each_ns);
    if (__builtin_expect(slow_is(worker->service, each_ns), 0)) {
        note_slow(req, runs, count, each_ns);
    }
    metric_add(METRIC_COMMANDS, (int64_t)commands);
}

void
execute_count_part(struct request *req)
{
    struct worker *worker = req->worker;
    uint64_t took_ns = end_span(req);

    stats_took(worker->stats, command_id(req->command), 0, took_ns);
    req->session->worked_ns += took_ns;
}

/* ---- errors -------------------------------------------------------------- */

/* The row of an unknown command has two %s, and the detail is the whole text;
 * in other rows the detail fills the only %s. */
void
execute_error_text(const struct worker *worker, enum err err, char *ret_text,
                   size_t size)
{
    const char *text = err_text(err);
    const char *hole = strstr(text, "%s");

    if (hole == NULL) {
        (void)snprintf(ret_text, size, "%s", text);
    } else if (strstr(hole + 2, "%s") != NULL) {
        (void)snprintf(ret_text, size, "%s", worker->detail);
    } else {
        (void)snprintf(ret_text, size, "%.*s%s%s", (int)(hole - text), text,
                       worker->detail, hole + 2);
    }
}

/* Returns the text of an error; it may lie in `room`. */
static inline struct slice
error_text(const struct worker *worker, enum err err, char room[ERROR_TEXT_MAX])
{
    if (strcmp(err_text(err), "%s") == 0) { /* redirects must be fast */
        return slice_of(worker->detail);
    }
    execute_error_text(worker, err, room, ERROR_TEXT_MAX);
    return slice_of(room);
}

static void
reply_with_error(struct request *req, enum err err)
{
    char room[ERROR_TEXT_MAX];
    struct slice text = error_text(req->worker, err, room);
    struct buf *out = req->reply->buf;
    size_t limit = out->limit;
    enum mem_claim before = mem_set_claim(MEM_SERVE);

    if (limit > 0 && out->len + ERROR_REPLY_MAX > limit) {
        out->limit = out->len + ERROR_REPLY_MAX; /* errors may exceed it */
    }
    reply_error(req->reply, err_prefix(err), text);
    out->limit = limit;
    (void)mem_set_claim(before);
    execute_note_error(req, err);
}

void
execute_note_error(struct request *req, enum err err)
{
    req->worker->failed = req->command;
    req->worker->failure = err;
    stats_bump(&req->worker->stats->error[err], 1);
    metric_add(METRIC_ERROR_REPLIES, 1);
}

void
execute_refuse(struct request *req, enum err err)
{
    char text[ERROR_TEXT_MAX];

    if (req->command != NULL) {
        struct stats_command *stats = req->worker->stats->command;

        stats_bump(&stats[command_id(req->command)].rejected, 1);
    }
    if (route_is_refusal(err)) {
        route_count(err);
    }
    txn_refused(req->session);
    if (!req->session->authenticated &&
        ++req->session->refusals >= REFUSALS_MAX) {
        req->session->closing = true;
    }
    if (req->command == NULL || req->command->id != CMD_ID_EXEC) {
        reply_with_error(req, err);
    } else if (route_is_refusal(err)) { /* clients follow redirects */
        reply_with_error(req, err);
        txn_end(req->session);
    } else {
        execute_error_text(req->worker, err, text, sizeof(text));
        txn_abort(req, err, text);
    }
}

/* ---- running, locks held ------------------------------------------------- */

/* Commands that keep memory for clients or keys may not use the reserve. */
static enum mem_claim
claim_of(const struct command *command)
{
    return (command->flags & (CMD_DENYOOM | CMD_KEEPS)) != 0 ? MEM_FILL
                                                             : MEM_SERVE;
}

/* Runs the handler, and puts its error in the place of its reply. */
static enum err
call_handler(struct request *req)
{
    struct buf *out = req->reply->buf;
    size_t mark = out->len;
    enum mem_claim before = mem_set_claim(claim_of(req->command));
    enum err err = req->command->handler(req);

    (void)mem_set_claim(before);
    if (__builtin_expect(out->failed, 0)) { /* no room for the reply */
        err = out->over ? ERR_REPLY_LIMIT : ERR_NOMEM;
        out->failed = false;
        out->over = false;
    }
    if (__builtin_expect(err != OK, 0)) {
        struct stats_command *stats = req->worker->stats->command;

        out->len = mark;
        if (err != ERR_AGAIN) {
            reply_with_error(req, err);
            stats_bump(&stats[command_id(req->command)].failed, 1);
        }
    }
    if (req->dirty > 0) {
        effect_add(req);
    }
    if (__builtin_expect((req->command->flags & CMD_AUDITED) != 0, 0) &&
        !req->obey && !req->worker->alone && err != ERR_AGAIN) {
        audit_note(req, err);
    }
    return err;
}

enum err
execute_locked(struct request *req)
{
    enum err err = call_handler(req);

    observe_read(req); /* a paused command has read some of its keys */
    if (err != ERR_AGAIN) {
        observe_ran(req);
    }
    return err;
}
