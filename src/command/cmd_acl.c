/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ACL CAT DRYRUN GENPASS GETUSER LIST LOG USERS WHOAMI, which read the users
 * inside a section of the gate. cmd_acl_users.c changes them.
 */
#include "access/acl_log.h"
#include "access/auth.h"
#include "access/handlers.h"
#include "access/users.h"
#include "base/hex.h"
#include "base/mem.h"
#include "base/random.h"
#include "command/help.h"
#include "engine/dialect.h"
#include "engine/rights.h"

/* ---- users --------------------------------------------------------------- */

enum err
cmd_acl_whoami(struct request *req)
{
    const struct user *user = req->session->user;

    reply_bulk(req->reply,
               user != NULL ? user_name(user) : slice_lit("default"));
    return OK;
}

enum err
cmd_acl_users(struct request *req)
{
    size_t count;
    struct user **list = users_sorted(req->service->users, &count);

    if (list == NULL) {
        return ERR_NOMEM;
    }
    reply_array(req->reply, count);
    for (size_t i = 0; i < count; i++) {
        reply_bulk(req->reply, user_name(list[i]));
    }
    mem_free(list);
    return OK;
}

enum err
cmd_acl_list(struct request *req)
{
    size_t count;
    struct user **list = users_sorted(req->service->users, &count);
    struct buf text = { 0 };
    enum err err;

    if (list == NULL) {
        return ERR_NOMEM;
    }
    reply_array(req->reply, count);
    for (size_t i = 0; i < count; i++) {
        text.len = 0;
        user_put(list[i], &text);
        reply_bulk(req->reply, buf_slice(&text));
    }
    err = text.failed ? ERR_NOMEM : OK;
    buf_free(&text);
    mem_free(list);
    return err;
}

static void
reply_user_flags(struct reply *reply, const struct user_rules *rules)
{
    reply_set(reply, (size_t)1 + rules->nopass + rules->skip_sanitize +
                         rules->sanitize);
    reply_bulk_text(reply, rules->on ? "on" : "off");
    if (rules->nopass) {
        reply_bulk_text(reply, "nopass");
    }
    if (rules->skip_sanitize) {
        reply_bulk_text(reply, "skip-sanitize-payload");
    }
    if (rules->sanitize) {
        reply_bulk_text(reply, "sanitize-payload");
    }
}

static void
reply_passwords(struct reply *reply, const struct buf *passwords)
{
    char hex[2 * AUTH_DIGEST + 1];

    reply_array(reply, passwords->len / AUTH_DIGEST);
    for (size_t at = 0; at < passwords->len; at += AUTH_DIGEST) {
        hex_put_bytes(hex, passwords->data + at, AUTH_DIGEST);
        reply_bulk_text(reply, hex);
    }
}

/* Replies with the fields of a selector, inside a map. Only a selector that is
 * limited to some databases has the last field. */
static enum err
reply_selector(struct reply *reply, const struct selector *selector)
{
    static const struct {
        const char *name;
        void (*put)(const struct selector *selector, struct buf *text);
    } fields[] = {
        { "commands", selector_put_commands },
        { "keys", selector_put_keys },
        { "channels", selector_put_channels },
        { "databases", selector_put_dbs },
    };
    struct buf text = { 0 };
    enum err err;

    for (size_t i = 0; i < 3 + (size_t)selector->some_dbs; i++) {
        text.len = 0;
        fields[i].put(selector, &text);
        reply_bulk_text(reply, fields[i].name);
        reply_bulk(reply, buf_slice(&text));
    }
    err = text.failed ? ERR_NOMEM : OK;
    buf_free(&text);
    return err;
}

enum err
cmd_acl_getuser(struct request *req)
{
    struct reply *reply = req->reply;
    const struct user *user = users_find(req->service->users, req->argv[2]);
    const struct selector *root;
    size_t count = 0;
    enum err err;

    if (user == NULL) {
        reply_null(reply);
        return OK;
    }
    root = &user->rules.root;
    reply_map(reply, (size_t)6 + root->some_dbs);
    reply_bulk_text(reply, "flags");
    reply_user_flags(reply, &user->rules);
    reply_bulk_text(reply, "passwords");
    reply_passwords(reply, &user->rules.passwords);
    err = reply_selector(reply, root);
    reply_bulk_text(reply, "selectors");
    for (const struct selector *s = root->next; s != NULL; s = s->next) {
        count++;
    }
    reply_array(reply, count);
    for (const struct selector *s = root->next; err == OK && s != NULL;
         s = s->next) {
        reply_map(reply, (size_t)3 + s->some_dbs);
        err = reply_selector(reply, s);
    }
    return err;
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

    for (unsigned id = 0; id < CMD_ID_LISTED; id++) {
        const struct command *command = command_at(id);

        if ((command->acl & category) != 0) {
            reply_bulk_text(req->reply,
                            dialect_command_name(req->service, command));
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

/* Replies with what the user may not do. */
static void
reply_denial(struct request *req, enum denial denial,
             const struct command *command, struct slice word)
{
    struct buf text = { 0 };

    buf_append_slice(&text, slice_lit("This user has no permissions to "));
    switch (denial) {
    case DENIED_COMMAND:
        buf_printf(&text, "run the '%s' command",
                   dialect_command_name(req->service, command));
        break;
    case DENIED_DB:
        buf_append_slice(&text, slice_lit("access the database"));
        break;
    default:
        buf_append_slice(&text, slice_lit("access the '"));
        buf_append_slice(&text, word);
        buf_printf(&text, "' %s", denial == DENIED_KEY ? "key" : "channel");
    }
    if (text.failed) {
        req->reply->buf->failed = true;
    } else {
        reply_bulk(req->reply, buf_slice(&text));
    }
    buf_free(&text);
}

enum err
cmd_acl_dryrun(struct request *req)
{
    struct slice who = req->argv[2];
    struct slice name = req->argv[3];
    const struct user *user = users_find(req->service->users, who);
    const struct command *command;
    enum denial denial;
    unsigned words;
    size_t at;

    if (user == NULL) {
        return request_fail(req, ERR_CUSTOM, "User '%.*s' not found",
                            slice_shown(who), who.data);
    }
    command = command_resolve(req->argv + 3, req->argc - 3, &words);
    if (command == NULL || command_is_forbidden(command->id)) {
        return request_fail(req, ERR_CUSTOM, "Command '%.*s' not found",
                            slice_shown(name), name.data);
    }
    if (!dialect_arity_fits(req->service, command, req->argc - 3)) {
        return request_fail(req, ERR_ARITY, "%s",
                            dialect_command_name(req->service, command));
    }
    denial = rights_of(user, req, command, req->argv + 3, req->argc - 3, &at);
    if (denial == UNDECIDED) {
        return ERR_AGAIN;
    }
    if (denial == DENIED_NOTHING) {
        reply_ok(req->reply);
    } else {
        reply_denial(req, denial, command, req->argv[3 + at]);
    }
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

    reply_map(reply, 10);
    reply_named_int(reply, "count", entry->count);
    reply_bulk_text(reply, "reason");
    reply_bulk_text(reply, entry->reason);
    reply_bulk_text(reply, "context");
    reply_bulk_text(reply, entry->context);
    reply_bulk_text(reply, "object");
    reply_bulk(reply, entry->object);
    reply_bulk_text(reply, "username");
    reply_bulk(reply, entry->user);
    reply_named_double(reply, "age-seconds", (double)age_ms / 1000);
    reply_bulk_text(reply, "client-info");
    reply_bulk(reply, entry->client);
    reply_named_int(reply, "entry-id", entry->id);
    reply_named_int(reply, "timestamp-created", entry->first_ms);
    reply_named_int(reply, "timestamp-last-updated", entry->time_ms);
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
