/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The error texts are those of Redis; the one about databases is Valkey's.
 */
#include "engine/rights.h"

#include "access/acl_log.h"
#include "base/mem.h"
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

/* ---- in slices ----------------------------------------------------------- */

enum {
    SLICE_WORK = 1 << 16, /* about half a millisecond */
    SHORT_WORK = 1 << 12  /* of the first slice: many clients may ask at once */
};

static struct permission_query
query_of(const struct request *req, const struct command *command,
         const struct slice *argv, size_t argc)
{
    return (struct permission_query){
        .command = command,
        .argv = argv,
        .argc = argc,
        .db = atomic_load_explicit(&req->session->db, memory_order_relaxed),
    };
}

/* Continues a check, or does its first slice, which may be enough. */
static enum denial
go_on(const struct user *user, const struct permission_query *query,
      struct rights_walk *walk, int64_t work, size_t *ret_at)
{
    enum denial denial;

    if (walk->changed != user->changed) {
        walk->changed = user->changed;
        walk->progress = (struct user_progress){ 0 };
        walk->done = false;
    }
    denial = walk->done
                 ? DENIED_NOTHING
                 : user_check_some(user, query, &walk->progress, &work, ret_at);
    walk->done = denial == DENIED_NOTHING;
    return denial;
}

enum denial
rights_of(const struct user *user, struct request *req,
          const struct command *command, const struct slice *argv, size_t argc,
          size_t *ret_at)
{
    const struct permission_query query = query_of(req, command, argv, argc);
    struct rights_walk *kept = request_resumed(req);
    struct rights_walk first = { .changed = user->changed };
    struct rights_walk *walk = kept != NULL ? kept : &first;
    enum denial denial;

    *ret_at = 0;
    denial = go_on(user, &query, walk, kept != NULL ? SLICE_WORK : SHORT_WORK,
                   ret_at);
    if (denial != UNDECIDED || kept != NULL) {
        return denial;
    }
    kept = request_may_pause(req) ? mem_try_alloc(sizeof(*kept)) : NULL;
    if (kept == NULL) {
        return go_on(user, &query, walk, PERMISSION_ANY_WORK, ret_at);
    }
    *kept = first;
    request_pause(req, kept, mem_free);
    return UNDECIDED;
}

bool
rights_allow_short(const struct request *req, const struct command *command,
                   const struct slice *argv, size_t argc)
{
    const struct permission_query query = query_of(req, command, argv, argc);
    struct user_progress progress = { 0 };
    int64_t work = SHORT_WORK;
    size_t at;

    return user_check_some(req->session->user, &query, &progress, &work, &at) ==
           DENIED_NOTHING;
}

uint64_t
rights_now(const struct session *session)
{
    return session->user != NULL ? session->user->changed + 1 : 0;
}

void
rights_forget(struct session *session)
{
    mem_free(session->rights);
    session->rights = NULL;
}

/* Checks the command of a request, or a slice of it. */
static enum denial
check(const struct request *req, size_t *ret_at)
{
    struct session *session = req->session;
    const struct user *user = session->user;
    const struct permission_query query =
        query_of(req, req->command, req->argv, req->argc);
    bool may_pause = request_may_pause(req);
    struct rights_walk *kept = may_pause ? session->rights : NULL;
    struct rights_walk first = { .changed = user->changed };
    struct rights_walk *walk = kept != NULL ? kept : &first;
    enum denial denial = go_on(user, &query, walk,
                               kept != NULL ? SLICE_WORK : SHORT_WORK, ret_at);

    if (denial != UNDECIDED || kept != NULL) {
        return denial;
    }
    kept = may_pause ? mem_try_alloc(sizeof(*kept)) : NULL;
    if (kept == NULL) {
        return go_on(user, &query, walk, PERMISSION_ANY_WORK, ret_at);
    }
    *kept = first;
    session->rights = kept;
    return UNDECIDED;
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
    size_t at = 0;
    enum denial denial;

    if (req->rights > 0) {
        return req->rights == rights_now(req->session) ? OK : ERR_AGAIN;
    }
    denial = check(req, &at);
    if (denial == DENIED_NOTHING || denial == UNDECIDED) {
        return denial == DENIED_NOTHING ? OK : ERR_AGAIN;
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
