/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Logs have the canonical form of RESP, which the scanner parses in place.
 * Replies are dropped: the worker remembers whether one was an error. No
 * command of a log pauses or waits, so each batch ends.
 */
#include "replay/obey.h"

#include "base/mem.h"
#include "engine/dispatch.h"
#include "engine/execute.h"
#include "engine/logged.h"
#include "engine/txn.h"

#include <errno.h>
#include <stdio.h>

enum { REPLIES_KEPT = 1 << 20 /* bytes of buffer, from batch to batch */ };

void
obey_init(struct obey *obey, struct service *service, unsigned index)
{
    *obey = (struct obey){ .stats = stats_new(1, CMD_ID_COUNT),
                           .worker = dispatch_new_worker(service, index) };
    obey->worker->stats = stats_slot(obey->stats, 0);
    session_init(&obey->session, true);
    obey->session.obey = true;
}

void
obey_fini(struct obey *obey)
{
    txn_end(&obey->session);
    session_fini(&obey->session);
    dispatch_free_worker(obey->worker);
    stats_free(obey->stats);
    batch_fini(&obey->batch);
    buf_free(&obey->replies);
}

/* ---- which commands ------------------------------------------------------ */

/* Removes MULTI and EXEC from the batch if drops_marks. Returns false if there
 * is a command that may not be in a log; it begins at *ret_bad. A write with
 * the same name as the one before needs no lookup. */
static bool
sift(struct batch *batch, bool drops_marks, size_t *ret_bad)
{
    struct slice last = { NULL, 0 };
    uint32_t kept = 0;

    for (uint32_t i = 0; i < batch->count; i++) {
        struct batch_command *bytes = &batch->command[i];
        const struct slice *argv = &batch->argv[bytes->first];

        if (last.data == NULL || !slice_equal(argv[0], last)) {
            enum logged_kind kind =
                logged_kind_of(command_find(argv[0]), argv, bytes->argc);

            if (kind == LOGGED_NEVER) {
                *ret_bad = bytes->begin;
                return false;
            }
            if (kind == LOGGED_MARK && drops_marks) {
                continue;
            }
            if (kind != LOGGED_MARK && kind != LOGGED_HISTORY) {
                last = argv[0];
            }
        }
        batch->command[kept++] = *bytes;
    }
    batch->count = kept;
    return true;
}

static bool
batch_needs_world(const struct batch *batch, bool *is_long)
{
    struct slice last = { NULL, 0 }; /* the last name of a command that does not
                                        need the raised gate */

    for (uint32_t i = 0; i < batch->count; i++) {
        const struct slice *argv = &batch->argv[batch->command[i].first];

        *is_long = *is_long || batch->command[i].argc > PAGES_LONG;
        if (last.data == NULL || !slice_equal(argv[0], last)) {
            const struct command *command = command_find(argv[0]);

            if (command != NULL &&
                (command->lock == LOCK_WORLD || command->lock == LOCK_WALK ||
                 logged_kind_of(command, argv, batch->command[i].argc) ==
                     LOGGED_HISTORY)) {
                return true;
            }
            last = argv[0];
        }
    }
    return false;
}

bool
obey_needs_world(struct obey *obey, struct slice commands)
{
    size_t begin;
    size_t at = 0;
    bool is_long = false;

    obey->is_long = false;
    do {
        begin = at;
        if (logged_fill(&obey->batch, commands, &at) != 0) {
            return false;
        }
        if (batch_needs_world(&obey->batch, &is_long)) {
            return true;
        }
    } while (at > begin);
    obey->is_long = is_long;
    return false;
}

/* ---- executing ----------------------------------------------------------- */

/* Describes the failed command in one printable line, for the log. */
static bool
say_failure(const struct worker *worker, char *ret_reason, size_t reason_size)
{
    const char *prefix = err_prefix(worker->failure);
    char text[ERROR_TEXT_MAX];

    execute_error_text(worker, worker->failure, text, sizeof(text));
    for (char *c = text; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~' || *c == '"') {
            *c = '?';
        }
    }
    (void)snprintf(ret_reason, reason_size, "%s failed: %s%s%s",
                   worker->failed != NULL ? worker->failed->name : "a command",
                   prefix, prefix[0] != '\0' ? " " : "", text);
    return false;
}

static bool
execute_batch(struct obey *obey, char *ret_reason, size_t reason_size)
{
    struct worker *worker = obey->worker;
    uint32_t done = 0;

    while (done < obey->batch.count) {
        uint32_t next;

        buf_reset(&obey->replies, REPLIES_KEPT);
        next = dispatch_batch(worker, &obey->session, &obey->batch, done,
                              UINT64_MAX, &obey->replies);
        if (worker->failure != OK) {
            return say_failure(worker, ret_reason, reason_size);
        }
        CHECK(next > done);
        done = next;
    }
    return true;
}

bool
obey_group(struct obey *obey, struct slice commands, uint64_t position,
           char *ret_reason, size_t reason_size)
{
    size_t bad = 0;
    size_t at = 0;

    CHECK(obey->session.obey && obey->worker->session == NULL);
    obey->worker->failure = OK;
    obey->worker->log_text = commands.data;
    obey->worker->log_begins = position;
    while (at < commands.len) {
        int error = logged_fill(&obey->batch, commands, &at);

        if (error != 0) {
            (void)snprintf(ret_reason, reason_size,
                           error == ENOMEM
                               ? "not enough memory"
                               : "no command at byte %zu of the group",
                           at);
            return false;
        }
        if (!sift(&obey->batch, obey->worker->alone, &bad)) {
            (void)snprintf(ret_reason, reason_size,
                           "the command at byte %zu of the group is neither a "
                           "write nor SELECT",
                           bad);
            return false;
        }
        if (!execute_batch(obey, ret_reason, reason_size)) {
            return false;
        }
    }
    return true;
}
