/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The texts are those of Redis. Only Valkey has one for databases.
 */
#include "engine/rights.h"

#include "admin/acl_log.h"
#include "base/metrics.h"
#include "base/num.h"
#include "engine/client.h"
#include "engine/dialect.h"
#include "engine/txn.h"

#include <stdio.h>

/* How a denial is shown. */
static const struct {
    const char *reason; /* in ACL LOG */
    enum metric metric;
    const char *text;    /* of the error; NULL: names the command */
    const char *in_exec; /* the reason in EXEC's error */
} shown[] = {
    [DENIED_COMMAND] = { "command", METRIC_DENIED_COMMANDS, NULL,
                         "no permission to execute the command or subcommand" },
    [DENIED_KEY] = { "key", METRIC_DENIED_KEYS,
                     "this user has no permissions to access one of the keys "
                     "used as arguments",
                     "no permission to touch the specified keys" },
    [DENIED_CHANNEL] = { "channel", METRIC_DENIED_CHANNELS,
                         "this user has no permissions to access one of the "
                         "channels used as arguments",
                         "no permission to access one of the channels used as "
                         "arguments" },
    [DENIED_DB] = { "database", METRIC_DENIED_DBS,
                    "No permissions to access database",
                    "no permission to access the database" },
};

void
rights_note(const struct request *req, const char *reason, struct slice object,
            struct slice user)
{
    const struct service *service = req->service;
    bool multi = req->worker->in_exec || txn_is_open(req->session);
    struct acl_log_entry entry = { .time_ms = req->now_ms,
                                   .reason = reason,
                                   .context = multi ? "multi" : "toplevel",
                                   .object = object,
                                   .user = user };
    struct buf line = { 0 };

    if (service->acl_log == NULL) {
        return;
    }
    client_line(&line, req->session, req->command, req->now_ms);
    if (!line.failed && line.len > 0) {
        entry.client = (struct slice){ line.data, line.len - 1 };
        acl_log_add(service->acl_log, &entry,
                    (uint64_t)service->conf->acllog_max_len);
    }
    buf_free(&line);
}

enum denial
rights_of(const struct user *user, const struct request *req,
          const struct command *command, const struct slice *argv, size_t argc,
          size_t *ret_at)
{
    const struct permission_query query = {
        .command = command,
        .argv = argv,
        .argc = argc,
        .db = atomic_load_explicit(&req->session->db, memory_order_relaxed),
    };

    *ret_at = 0;
    return user_check(user, &query, ret_at);
}

/* Writes the error to the worker's detail. */
static void
write_error(const struct request *req, enum denial denial)
{
    char *to = req->worker->detail;
    size_t size = sizeof(req->worker->detail);

    if (req->worker->in_exec) {
        (void)snprintf(to, size,
                       "ACLs rules changed between the moment the transaction "
                       "was accumulated and the EXEC call. This command is no "
                       "longer allowed for the following reason: %s",
                       shown[denial].in_exec);
    } else if (shown[denial].text != NULL) {
        (void)snprintf(to, size, "%s", shown[denial].text);
    } else {
        (void)snprintf(to, size,
                       "this user has no permissions to run the '%s' command",
                       dialect_command_name(req->service, req->command));
    }
}

enum err
rights_check(const struct request *req)
{
    const struct user *user = req->session->user;
    char db[NUM_U64_MAX];
    struct slice object;
    size_t at;
    enum denial denial =
        rights_of(user, req, req->command, req->argv, req->argc, &at);

    if (denial == DENIED_NOTHING) {
        return OK;
    }
    if (denial == DENIED_COMMAND) {
        object = slice_of(dialect_command_name(req->service, req->command));
    } else if (at > 0) {
        object = req->argv[at];
    } else {
        object = (struct slice){ db, num_format_u64(req->session->db, db) };
    }
    metric_add(shown[denial].metric, 1);
    rights_note(req, shown[denial].reason, object, user_name(user));
    write_error(req, denial);
    return ERR_NOPERM;
}
