/* SPDX-License-Identifier: BSD-3-Clause
 *
 * COMMAND DOCS shows the documentation in the command table. Reads constants
 * only, any loop.
 */
#include "access/handlers.h"
#include "command/cmd_command.h"
#include "engine/dialect.h"
#include "info/info.h"

static const char *
type_name(enum arg_type type)
{
    static const char *const names[] = {
        [ARG_STRING] = "string",         [ARG_INTEGER] = "integer",
        [ARG_DOUBLE] = "double",         [ARG_KEY] = "key",
        [ARG_PATTERN] = "pattern",       [ARG_UNIX_TIME] = "unix-time",
        [ARG_PURE_TOKEN] = "pure-token", [ARG_ONEOF] = "oneof",
        [ARG_BLOCK] = "block",
    };

    return names[type];
}

static void
reply_arg_flags(struct reply *reply, unsigned flags)
{
    static const char *const names[] = { "optional", "multiple",
                                         "multiple_token" };

    reply_set(reply, (size_t)__builtin_popcount(flags));
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if ((flags >> i & 1) != 0) {
            reply_simple(reply, names[i]);
        }
    }
}

/* Replies with a name and its value; nothing if the value is NULL. */
static void
reply_text_field(struct reply *reply, const char *name, const char *value)
{
    if (value != NULL) {
        reply_bulk_text(reply, name);
        reply_bulk_text(reply, value);
    }
}

static void
reply_args(struct reply *reply, const struct command_arg *args)
{
    size_t count = 0;
    int64_t key_spec = 0; /* one specification for each key argument */

    while (args[count].name != NULL) {
        count++;
    }
    reply_array(reply, count);
    for (const struct command_arg *arg = args; arg->name != NULL; arg++) {
        reply_map(reply, 2U + (arg->type == ARG_KEY) + (arg->token != NULL) +
                             (arg->since != NULL) +
                             (arg->deprecated_since != NULL) +
                             (arg->flags != 0) + (arg->nested != NULL));
        reply_bulk_text(reply, "name");
        reply_bulk_text(reply, arg->name);
        reply_bulk_text(reply, "type");
        reply_bulk_text(reply, type_name(arg->type));
        if (arg->type == ARG_KEY) {
            reply_bulk_text(reply, "key_spec_index");
            reply_int(reply, key_spec++);
        }
        reply_text_field(reply, "token", arg->token);
        reply_text_field(reply, "since", arg->since);
        reply_text_field(reply, "deprecated_since", arg->deprecated_since);
        if (arg->flags != 0) {
            reply_bulk_text(reply, "flags");
            reply_arg_flags(reply, arg->flags);
        }
        if (arg->nested != NULL) {
            reply_bulk_text(reply, "arguments");
            reply_args(reply, arg->nested);
        }
    }
}

static void
reply_doc(struct request *req, const struct command *command)
{
    const struct command row = dialect_row(req->service, command);
    struct reply *reply = req->reply;
    bool module = (row.flags & CMD_MODULE) != 0;
    unsigned subs = cmd_command_count_subs(command);
    const char *doc_flag = row.is_syscmd                  ? "syscmd"
                           : row.deprecated_since != NULL ? "deprecated"
                                                          : NULL;

    reply_map(reply, 4U + module + (doc_flag != NULL) +
                         (row.deprecated_since != NULL) +
                         (row.replaced_by != NULL) + (row.args != NULL) +
                         (subs > 0));
    reply_bulk_text(reply, "summary");
    reply_bulk_text(reply, row.summary);
    reply_bulk_text(reply, "since");
    reply_bulk_text(reply, row.since);
    reply_bulk_text(reply, "group");
    reply_bulk_text(reply, row.group);
    reply_bulk_text(reply, "complexity");
    reply_bulk_text(reply, row.complexity);
    if (module) {
        reply_bulk_text(reply, "module");
        reply_bulk_text(reply, INFO_MODULE_NAME);
    }
    if (doc_flag != NULL) {
        reply_bulk_text(reply, "doc_flags");
        reply_set(reply, 1);
        reply_simple(reply, doc_flag);
    }
    reply_text_field(reply, "deprecated_since", row.deprecated_since);
    reply_text_field(reply, "replaced_by", row.replaced_by);
    if (row.args != NULL) {
        reply_bulk_text(reply, "arguments");
        reply_args(reply, row.args);
    }
    if (subs > 0) {
        reply_bulk_text(reply, "subcommands");
        reply_map(reply, subs);
        for (unsigned i = 1; i <= subs; i++) {
            reply_bulk_text(reply, command[i].name);
            reply_doc(req, command + i);
        }
    }
}

static void
reply_named_doc(struct request *req, const struct command *command)
{
    reply_bulk_text(req->reply, dialect_command_name(req->service, command));
    reply_doc(req, command);
}

enum err
cmd_command_docs(struct request *req)
{
    size_t place, count = 0;

    if (req->argc == 2) {
        reply_map(req->reply, cmd_command_count_top());
        for (unsigned id = 0; id < CMD_ID_LISTED; id++) {
            if (cmd_command_is_top(command_at(id))) {
                reply_named_doc(req, command_at(id));
            }
        }
        return OK;
    }
    if (req->argc - 2 > CMD_COMMAND_NAMES_MAX) {
        return request_fail(req, ERR_CUSTOM, "more names than commands");
    }
    place = reply_begin(req->reply);
    for (size_t i = 2; i < req->argc; i++) {
        const struct command *command = cmd_command_find(req->argv[i]);

        if (command != NULL) {
            reply_named_doc(req, command);
            count++;
        }
    }
    reply_map_end(req->reply, place, count);
    return OK;
}
