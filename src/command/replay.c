/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The journal writes commands in the canonical form that the scanner takes
 * where they lie; anything else in it was not written by us. Replies are
 * thrown away: the worker says whether there was an error among them.
 */
#include "command/replay.h"

#include "base/mem.h"
#include "command/dispatch.h"
#include "command/session.h"
#include "command/txn.h"
#include "proto/scan.h"

#include <stdio.h>

enum { REPLIES_KEPT = 1 << 20 /* bytes of buffer, from batch to batch */ };

struct replay {
    struct stats *stats; /* not those that clients see */
    struct worker *worker;
    struct session session;
    struct batch batch;
    struct buf replies;
};

struct replay *
replay_new(struct service *service)
{
    struct replay *replay = mem_zalloc(sizeof(*replay));

    replay->stats = stats_new(1, CMD_ID_COUNT);
    replay->worker = dispatch_new_worker(service, 0);
    replay->worker->stats = stats_slot(replay->stats, 0);
    replay->worker->alone = true;
    session_init(&replay->session, true);
    replay->session.obey = true;
    return replay;
}

void
replay_free(struct replay *replay)
{
    if (replay != NULL) {
        txn_end(&replay->session);
        session_fini(&replay->session);
        dispatch_free_worker(replay->worker);
        stats_free(replay->stats);
        batch_fini(&replay->batch);
        buf_free(&replay->replies);
        mem_free(replay);
    }
}

/* ---- which commands ------------------------------------------------------ */

enum kind { KIND_EXECUTE, KIND_SKIP, KIND_REFUSE };

static enum kind
kind_of(const struct command *command)
{
    if (command == NULL) {
        return KIND_REFUSE;
    }
    if (command->handler == cmd_multi || command->handler == cmd_exec) {
        return KIND_SKIP;
    }
    return (command->flags & CMD_WRITE) != 0 ||
                   command_id(command) == CMD_ID_SELECT
               ? KIND_EXECUTE
               : KIND_REFUSE;
}

/* Takes MULTI and EXEC out of the batch. False if there is a command that no
 * effect consists of, which begins at *ret_bad. */
static bool
sift(struct batch *batch, size_t *ret_bad)
{
    struct slice last = { NULL, 0 };
    uint32_t kept = 0;

    for (uint32_t i = 0; i < batch->count; i++) {
        struct batch_command *bytes = &batch->command[i];
        struct slice name = batch->argv[bytes->first];
        enum kind kind = KIND_EXECUTE;

        if (last.data == NULL || !slice_equal(name, last)) {
            kind = kind_of(command_find(name));
        }
        if (kind == KIND_REFUSE) {
            *ret_bad = bytes->begin;
            return false;
        }
        if (kind == KIND_EXECUTE) {
            last = name;
            batch->command[kept++] = *bytes;
        }
    }
    batch->count = kept;
    return true;
}

/* ---- executing ----------------------------------------------------------- */

/* The row's own text, without what a client's words would put into it. */
static bool
say_failure(const struct worker *worker, char *ret_reason, size_t reason_size)
{
    const char *prefix = err_prefix(worker->failure);

    (void)snprintf(ret_reason, reason_size, "%s failed: %s%s%s",
                   worker->failed != NULL ? worker->failed->name : "a command",
                   prefix, prefix[0] != '\0' ? " " : "",
                   err_text(worker->failure));
    return false;
}

static bool
execute(struct replay *replay, char *ret_reason, size_t reason_size)
{
    struct worker *worker = replay->worker;
    uint32_t done = 0;

    while (done < replay->batch.count) {
        uint32_t next;

        buf_reset(&replay->replies, REPLIES_KEPT);
        next = dispatch_batch(worker, &replay->session, &replay->batch, done,
                              UINT64_MAX, &replay->replies);
        if (worker->failure != OK) {
            return say_failure(worker, ret_reason, reason_size);
        }
        CHECK(next > done);
        done = next;
    }
    return true;
}

bool
replay_group(void *ctx, struct slice commands, char *ret_reason,
             size_t reason_size)
{
    static const struct stream_limits limits = { .args_max = SIZE_MAX,
                                                 .bulk_max = SIZE_MAX,
                                                 .query_max = SIZE_MAX };
    struct replay *replay = ctx;
    size_t bad = 0;
    size_t at = 0;

    replay->worker->failure = OK;
    while (at < commands.len) {
        size_t begin = at;

        batch_clear(&replay->batch);
        if (scan_commands(commands, &limits, &replay->batch, &at) != OK) {
            (void)snprintf(ret_reason, reason_size, "not enough memory");
            return false;
        }
        if (at == begin) {
            (void)snprintf(ret_reason, reason_size,
                           "no command at byte %zu of the group", at);
            return false;
        }
        if (!sift(&replay->batch, &bad)) {
            (void)snprintf(ret_reason, reason_size,
                           "the command at byte %zu of the group is neither a "
                           "write nor SELECT",
                           bad);
            return false;
        }
        if (!execute(replay, ret_reason, reason_size)) {
            return false;
        }
    }
    return true;
}
