/* SPDX-License-Identifier: BSD-3-Clause
 *
 * In a syntax, square brackets mean optional, round ones a choice, angle
 * brackets a value. Recursion follows the static tables, a few levels deep.
 */
#include "command/help.h"

#include "access/handlers.h"
#include "engine/request.h"

static void append_list(struct buf *text, const struct command_arg *args,
                        const char *between);

static void
append_word(struct buf *text, const char *word)
{
    buf_append_slice(text, slice_of(word));
}

/* Appends one occurrence of an argument, with its token in front. */
static void
append_value(struct buf *text, const struct command_arg *arg, bool token)
{
    bool optional = (arg->flags & ARG_OPTIONAL) != 0;

    if (token && arg->token != NULL) {
        append_word(text, arg->token);
        append_word(text, arg->type == ARG_PURE_TOKEN ? "" : " ");
    }
    switch (arg->type) {
    case ARG_PURE_TOKEN:
        break;
    case ARG_ONEOF: /* an optional one has its brackets already */
        append_word(text, optional && arg->token == NULL ? "" : "(");
        append_list(text, arg->nested, "|");
        append_word(text, optional && arg->token == NULL ? "" : ")");
        break;
    case ARG_BLOCK:
        append_list(text, arg->nested, " ");
        break;
    default:
        append_word(text, "<");
        append_word(text, arg->name);
        append_word(text, ">");
    }
}

static void
append_arg(struct buf *text, const struct command_arg *arg)
{
    bool optional = (arg->flags & ARG_OPTIONAL) != 0;

    append_word(text, optional ? "[" : "");
    append_value(text, arg, true);
    if ((arg->flags & ARG_MULTIPLE) != 0) {
        append_word(text, " [");
        append_value(text, arg, (arg->flags & ARG_MULTIPLE_TOKEN) != 0);
        append_word(text, " ...]");
    }
    append_word(text, optional ? "]" : "");
}

static void
append_list(struct buf *text, const struct command_arg *args,
            const char *between)
{
    for (const struct command_arg *arg = args; arg->name != NULL; arg++) {
        append_word(text, arg == args ? "" : between);
        append_arg(text, arg);
    }
}

void
help_append_syntax(struct buf *text, const struct command_arg *args)
{
    if (args != NULL) {
        append_list(text, args, " ");
    }
}

static void
append_upper(struct buf *text, const char *word, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = word[i];

        if (c >= 'a' && c <= 'z') {
            c = (char)(c - ('a' - 'A'));
        }
        buf_append(text, &c, 1);
    }
}

enum err
help_wrong_subcommand(struct request *req)
{
    struct slice sub = req->argv[1];
    const char *name = req->command->name;
    struct buf upper = { 0 };
    enum err err = ERR_NOMEM;

    append_upper(&upper, name, strcspn(name, "|"));
    if (!upper.failed) {
        err = request_fail(req, ERR_CUSTOM,
                           "unknown subcommand or wrong number of arguments "
                           "for '%.*s'. Try %.*s HELP.",
                           slice_shown(sub), sub.data, (int)upper.len,
                           upper.data);
    }
    buf_free(&upper);
    return err;
}

/* Replies with the line and empties the buffer. */
static void
reply_line(struct reply *reply, struct buf *text)
{
    buf_append(text, "", 1);
    if (!text->failed) {
        reply_simple(reply, text->data);
    } else {
        reply->buf->failed = true;
    }
    text->len = 0;
}

/* The subcommands of a container follow it in the table; HELP is one of them.
 */
enum err
cmd_help(struct request *req)
{
    const char *own = req->command->name;
    size_t prefix = (size_t)(strchr(own, '|') - own) + 1;
    unsigned id = command_id(req->command);
    struct buf text = { 0 };
    size_t place = reply_begin(req->reply), count = 1;

    append_upper(&text, own, prefix - 1);
    append_word(&text, " <subcommand> [<arg> ...]. Subcommands are:");
    reply_line(req->reply, &text);
    while (id > 0 && strncmp(command_at(id - 1)->name, own, prefix) == 0) {
        id--;
    }
    for (; id < CMD_ID_COUNT; id++) {
        const struct command *sub = command_at(id);

        if (strncmp(sub->name, own, prefix) != 0) {
            break;
        }
        append_upper(&text, sub->name + prefix, strlen(sub->name) - prefix);
        append_word(&text, sub->args != NULL ? " " : "");
        help_append_syntax(&text, sub->args);
        reply_line(req->reply, &text);
        append_word(&text, "    ");
        append_word(&text, sub->summary);
        reply_line(req->reply, &text);
        count += 2;
    }
    reply_array_end(req->reply, place, count);
    buf_free(&text);
    return OK;
}
