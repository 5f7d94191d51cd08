/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ACL CAT DRYRUN GENPASS GETUSER LIST LOG USERS WHOAMI. There is one user,
 * "default", who may do everything once the password of requirepass is given.
 * Reads conf, inside a section of the gate.
 */
#include "admin/acl_log.h"
#include "admin/auth.h"
#include "base/random.h"
#include "command/help.h"
#include "engine/dialect.h"
#include "engine/handlers.h"

static const char user_name[] = "default";

/* ---- what there is ------------------------------------------------------- */

enum err
cmd_acl_whoami(struct request *req)
{
    reply_bulk_text(req->reply, user_name);
    return OK;
}

enum err
cmd_acl_users(struct request *req)
{
    reply_array(req->reply, 1);
    reply_bulk_text(req->reply, user_name);
    return OK;
}

enum err
cmd_acl_list(struct request *req)
{
    struct buf text = { 0 };
    char digest[AUTH_DIGEST_HEX];
    enum err err = ERR_NOMEM;

    buf_printf(&text, "user %s on ", user_name);
    if (auth_required(req->service->conf)) {
        auth_digest(req->service->conf, digest);
        buf_printf(&text, "#%s", digest);
    } else {
        buf_append_slice(&text, slice_lit("nopass"));
    }
    buf_append_slice(&text, slice_lit(" ~* &* +@all"));
    if (!text.failed) {
        reply_array(req->reply, 1);
        reply_bulk(req->reply, buf_slice(&text));
        err = OK;
    }
    buf_free(&text);
    return err;
}

enum err
cmd_acl_getuser(struct request *req)
{
    const struct conf *conf = req->service->conf;
    struct reply *reply = req->reply;
    char digest[AUTH_DIGEST_HEX];

    if (!slice_equal(req->argv[2], slice_of(user_name))) {
        reply_null(reply);
        return OK;
    }
    reply_map(reply, 6);
    reply_bulk_text(reply, "flags");
    reply_set(reply, auth_required(conf) ? 1 : 2);
    reply_bulk_text(reply, "on");
    if (!auth_required(conf)) {
        reply_bulk_text(reply, "nopass");
    }
    reply_bulk_text(reply, "passwords");
    reply_array(reply, auth_required(conf));
    if (auth_required(conf)) {
        auth_digest(conf, digest);
        reply_bulk_text(reply, digest);
    }
    reply_bulk_text(reply, "commands");
    reply_bulk_text(reply, "+@all");
    reply_bulk_text(reply, "keys");
    reply_bulk_text(reply, "~*");
    reply_bulk_text(reply, "channels");
    reply_bulk_text(reply, "&*");
    reply_bulk_text(reply, "selectors");
    reply_array(reply, 0);
    return OK;
}

/* ---- commands and categories --------------------------------------------- */

static enum err
reply_categories(struct request *req)
{
    size_t place = reply_begin(req->reply), count = 0;
    const char *name;

    while ((name = command_category_name((unsigned)count)) != NULL) {
        reply_bulk_text(req->reply, name);
        count++;
    }
    reply_array_end(req->reply, place, count);
    return OK;
}

static enum err
reply_category(struct request *req, uint32_t category)
{
    size_t place = reply_begin(req->reply), count = 0;

    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        struct command row = dialect_row(req->service, command_at(id));

        if ((row.acl & category) != 0) {
            reply_bulk_text(req->reply, row.name);
            count++;
        }
    }
    reply_array_end(req->reply, place, count);
    return OK;
}

enum err
cmd_acl_cat(struct request *req)
{
    struct slice name;
    const char *known;

    if (req->argc == 2) {
        return reply_categories(req);
    }
    if (req->argc > 3) {
        return help_wrong_subcommand(req);
    }
    name = req->argv[2];
    for (unsigned i = 0; (known = command_category_name(i)) != NULL; i++) {
        if (slice_is_word(name, known)) {
            return reply_category(req, 1U << i);
        }
    }
    return request_fail(req, ERR_CUSTOM, "Unknown category '%.*s'",
                        slice_shown(name), name.data);
}

/* The one user may do everything. */
enum err
cmd_acl_dryrun(struct request *req)
{
    struct slice user = req->argv[2];
    struct slice name = req->argv[3];
    const struct command *command;
    unsigned words;

    if (!slice_equal(user, slice_of(user_name))) {
        return request_fail(req, ERR_CUSTOM, "User '%.*s' not found",
                            slice_shown(user), user.data);
    }
    command = command_resolve(req->argv + 3, req->argc - 3, &words);
    if (command == NULL) {
        return request_fail(req, ERR_CUSTOM, "Command '%.*s' not found",
                            slice_shown(name), name.data);
    }
    if (!dialect_arity_fits(req->service, command, req->argc - 3)) {
        return request_fail(req, ERR_ARITY, "%s",
                            dialect_command_name(req->service, command));
    }
    reply_ok(req->reply);
    return OK;
}

/* ---- GENPASS ------------------------------------------------------------- */

enum err
cmd_acl_genpass(struct request *req)
{
    enum { BITS_DEFAULT = 256, BITS_MAX = 4096 };
    char text[BITS_MAX / 4 + 1];
    int64_t bits = BITS_DEFAULT;

    if (req->argc > 3) {
        return help_wrong_subcommand(req);
    }
    if (req->argc == 3 && !slice_to_i64(req->argv[2], &bits)) {
        return ERR_NOT_INTEGER;
    }
    if (bits <= 0 || bits > BITS_MAX) {
        return request_fail(req, ERR_CUSTOM,
                            "ACL GENPASS argument must be the number of bits "
                            "for the output password, a positive number up to "
                            "%d",
                            BITS_MAX);
    }
    random_hex(text, (size_t)(bits + 3) / 4);
    reply_bulk_text(req->reply, text);
    return OK;
}

/* ---- LOG ----------------------------------------------------------------- */

static void
show_total(void *ctx, size_t entries)
{
    const struct request *req = ctx;

    reply_array(req->reply, entries);
}

static void
show_entry(void *ctx, const struct acl_log_entry *entry)
{
    const struct request *req = ctx;
    struct reply *reply = req->reply;
    uint64_t age_ms =
        req->now_ms > entry->time_ms ? req->now_ms - entry->time_ms : 0;

    reply_map(reply, 7);
    reply_bulk_text(reply, "count");
    reply_int(reply, (int64_t)entry->count);
    reply_bulk_text(reply, "reason");
    reply_bulk_text(reply, "auth");
    reply_bulk_text(reply, "context");
    reply_bulk_text(reply, entry->context);
    reply_bulk_text(reply, "object");
    reply_bulk(reply, entry->object);
    reply_bulk_text(reply, "username");
    reply_bulk(reply, entry->user);
    reply_bulk_text(reply, "age-seconds");
    reply_double(reply, (double)age_ms / 1000);
    reply_bulk_text(reply, "client-info");
    reply_bulk(reply, entry->client);
}

enum err
cmd_acl_log(struct request *req)
{
    enum { COUNT_DEFAULT = 10 };
    struct acl_log_visitor visitor = { show_total, show_entry, req };
    int64_t count = COUNT_DEFAULT;

    if (req->argc > 3) {
        return help_wrong_subcommand(req);
    }
    if (req->argc == 3 && slice_is_word(req->argv[2], "reset")) {
        acl_log_reset(req->service->acl_log);
        reply_ok(req->reply);
        return OK;
    }
    if (req->argc == 3 && !slice_to_i64(req->argv[2], &count)) {
        return ERR_NOT_INTEGER;
    }
    acl_log_visit(req->service->acl_log, count > 0 ? (uint64_t)count : 0,
                  &visitor);
    return OK;
}
