/* SPDX-License-Identifier: BSD-3-Clause
 *
 * COMMAND and its subcommands COUNT, INFO, LIST, GETKEYS and GETKEYSANDFLAGS
 * show the command table. They read only constants and the option dialect, so
 * any loop may run them. For DOCS see cmd_command_docs.c.
 */
#include "command/cmd_command.h"

#include "access/handlers.h"
#include "base/glob.h"
#include "engine/dialect.h"
#include "info/info.h"

#include <stdio.h>

static const char *const flag_names[] = {
    "write",
    "readonly",
    "denyoom",
    "module",
    "admin",
    "pubsub",
    "noscript",
    "blocking",
    "loading",
    "stale",
    "skip_monitor",
    "skip_slowlog",
    "asking",
    "fast",
    "no_auth",
    "may_replicate",
    "sentinel",
    "only_sentinel",
    "no_mandatory_keys",
    "protected",
    "no_async_loading",
    "no_multi",
    "movablekeys",
    "allow_busy",
};

/* Redis has the first four and does not show them; the last three are
 * Bloomery's. */
static const uint32_t FLAGS_NOT_SHOWN = CMD_MAY_REPLICATE | CMD_PROTECTED |
                                        CMD_SENTINEL | CMD_ONLY_SENTINEL |
                                        CMD_KEEPS | CMD_REMAKES | CMD_AUDITED;

static const char *const key_use_names[] = {
    "RO", "RW", "OW", "RM", "access", "update", "insert", "delete", "not_key",
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

_Static_assert(1U << (LENGTH(flag_names) - 1) == CMD_ALLOW_BUSY,
               "one name a flag");
_Static_assert(1U << (LENGTH(key_use_names) - 1) == KEY_NOT, "one name a use");

/* ---- finding ------------------------------------------------------------- */

bool
cmd_command_is_top(const struct command *command)
{
    return command_is_listed(command) && strchr(command->name, '|') == NULL;
}

unsigned
cmd_command_count_subs(const struct command *command)
{
    size_t prefix = strlen(command->name);
    unsigned count = 0;

    if (!command->container) {
        return 0;
    }
    for (unsigned id = command_id(command) + 1; id < CMD_ID_LISTED; id++) {
        const char *name = command_at(id)->name;

        if (strncmp(name, command->name, prefix) != 0 || name[prefix] != '|') {
            break;
        }
        count++;
    }
    return count;
}

const struct command *
cmd_command_find(struct slice name)
{
    const char *bar = name.len > 0 ? memchr(name.data, '|', name.len) : NULL;
    const struct command *command;
    struct slice head, sub;

    if (bar == NULL) {
        command = command_find(name);
        return command != NULL && command_is_listed(command) ? command : NULL;
    }
    head = (struct slice){ name.data, (size_t)(bar - name.data) };
    sub = (struct slice){ bar + 1, name.len - head.len - 1 };
    command = command_find(head);
    command = command != NULL && command->container
                  ? command_find_sub(command, sub)
                  : NULL;
    return command != NULL && command_is_listed(command) ? command : NULL;
}

unsigned
cmd_command_count_top(void)
{
    unsigned count = 0;

    for (unsigned id = 0; id < CMD_ID_LISTED; id++) {
        count += cmd_command_is_top(command_at(id));
    }
    return count;
}

/* ---- one row as COMMAND INFO shows it ------------------------------------ */

/* Replies with the names of the bits that are set, each behind `lead`. */
static void
reply_bits(struct reply *reply, uint32_t bits, const char *lead,
           const char *const *names)
{
    char text[32];

    reply_set(reply, (size_t)__builtin_popcount(bits));
    for (unsigned i = 0; bits >> i != 0; i++) {
        if ((bits >> i & 1) != 0) {
            (void)snprintf(text, sizeof(text), "%s%s", lead, names[i]);
            reply_simple(reply, text);
        }
    }
}

static void
reply_tips(struct reply *reply, const char *const *tips)
{
    size_t count = 0;

    while (tips != NULL && tips[count] != NULL) {
        count++;
    }
    reply_set(reply, count);
    for (size_t i = 0; i < count; i++) {
        reply_bulk_text(reply, tips[i]);
    }
}

/* Replies with one key specification. Its `lastkey` counts from the first key,
 * or, if it is negative, from the end of the arguments. */
static void
reply_key_spec(struct reply *reply, uint32_t use,
               const struct command_keys *keys)
{
    int last = keys->last >= 0 ? keys->last - keys->first : keys->last;

    reply_map(reply, 3);
    reply_bulk_text(reply, "flags");
    reply_bits(reply, use, "", key_use_names);
    reply_bulk_text(reply, "begin_search");
    reply_map(reply, 2);
    reply_bulk_text(reply, "type");
    reply_bulk_text(reply, "index");
    reply_bulk_text(reply, "spec");
    reply_map(reply, 1);
    reply_bulk_text(reply, "index");
    reply_int(reply, keys->first);
    reply_bulk_text(reply, "find_keys");
    reply_map(reply, 2);
    reply_bulk_text(reply, "type");
    reply_bulk_text(reply, "range");
    reply_bulk_text(reply, "spec");
    reply_map(reply, 3);
    reply_bulk_text(reply, "lastkey");
    reply_int(reply, last);
    reply_bulk_text(reply, "keystep");
    reply_int(reply, keys->step);
    reply_bulk_text(reply, "limit");
    reply_int(reply, 0);
}

static void
reply_key_specs(struct reply *reply, const struct command *command)
{
    struct command_keys keys = command->keys;

    reply_set(reply, keys.first == 0 ? 0 : command->first_key_use == 0 ? 1 : 2);
    if (command->first_key_use != 0) {
        keys.last = keys.first;
        reply_key_spec(reply, command->first_key_use, &keys);
        keys = command->keys;
        keys.first += keys.step;
        reply_key_spec(reply, command->key_use, &keys);
    } else if (keys.first > 0) {
        reply_key_spec(reply, command->key_use, &keys);
    }
}

static void
reply_fields(struct request *req, const struct command *command)
{
    const struct command row = dialect_row(req->service, command);
    struct reply *reply = req->reply;

    reply_array(reply, 10);
    reply_bulk_text(reply, row.name);
    reply_int(reply, row.arity);
    reply_bits(reply, row.flags & ~FLAGS_NOT_SHOWN, "", flag_names);
    reply_int(reply, row.keys.first);
    reply_int(reply, row.keys.last);
    reply_int(reply, row.keys.step);
    reply_bits(reply, row.acl, "@", command_category_names);
    reply_tips(reply, row.tips);
    reply_key_specs(reply, &row);
}

static void
reply_info(struct request *req, const struct command *command)
{
    unsigned subs = cmd_command_count_subs(command);

    reply_fields(req, command);
    if (subs == 0) {
        reply_set(req->reply, 0);
        return;
    }
    reply_array(req->reply, subs);
    for (unsigned i = 1; i <= subs; i++) {
        reply_fields(req, command + i);
        reply_set(req->reply, 0);
    }
}

static void
reply_all_info(struct request *req)
{
    reply_array(req->reply, cmd_command_count_top());
    for (unsigned id = 0; id < CMD_ID_LISTED; id++) {
        if (cmd_command_is_top(command_at(id))) {
            reply_info(req, command_at(id));
        }
    }
}

/* ---- handlers ------------------------------------------------------------ */

enum err
cmd_command(struct request *req)
{
    reply_all_info(req);
    return OK;
}

enum err
cmd_command_count(struct request *req)
{
    reply_int(req->reply, cmd_command_count_top());
    return OK;
}

enum err
cmd_command_info(struct request *req)
{
    if (req->argc == 2) {
        reply_all_info(req);
        return OK;
    }
    if (req->argc - 2 > CMD_COMMAND_NAMES_MAX) {
        return request_fail(req, ERR_CUSTOM, "more names than commands");
    }
    reply_array(req->reply, req->argc - 2);
    for (size_t i = 2; i < req->argc; i++) {
        const struct command *command = cmd_command_find(req->argv[i]);

        if (command != NULL) {
            reply_info(req, command);
        } else {
            reply_null(req->reply);
        }
    }
    return OK;
}

struct filter {
    enum { FILTER_NONE, FILTER_MODULE, FILTER_CATEGORY, FILTER_PATTERN } by;
    struct slice value;
};

static enum err
parse_filter(struct args *args, struct filter *filter)
{
    if (args_left(args) == 0) {
        return OK;
    }
    if (args_left(args) != 3 || !args_word(args, "FILTERBY")) {
        return ERR_SYNTAX;
    }
    if (args_word(args, "MODULE")) {
        filter->by = FILTER_MODULE;
    } else if (args_word(args, "ACLCAT")) {
        filter->by = FILTER_CATEGORY;
    } else if (args_word(args, "PATTERN")) {
        filter->by = FILTER_PATTERN;
    } else {
        return ERR_SYNTAX;
    }
    filter->value = args_bytes(args);
    return args_end(args);
}

static bool
has_category(const struct command *command, struct slice name)
{
    const char *known;

    for (unsigned i = 0; (known = command_category_name(i)) != NULL; i++) {
        if ((command->acl >> i & 1) != 0 && slice_is_word(name, known)) {
            return true;
        }
    }
    return false;
}

/* Returns whether the filter takes the command. *work is the work that is left
 * for matching all rows. */
static bool
filter_takes(const struct filter *filter, const struct command *command,
             size_t *work)
{
    switch (filter->by) {
    case FILTER_MODULE:
        return (command->flags & CMD_MODULE) != 0 &&
               slice_is_word(filter->value, INFO_MODULE_NAME);
    case FILTER_CATEGORY:
        return has_category(command, filter->value);
    case FILTER_PATTERN:
        return glob_match(filter->value, slice_of(command->name), true, work) ==
               GLOB_YES;
    default:
        return true;
    }
}

enum err
cmd_command_list(struct request *req)
{
    struct filter filter = { FILTER_NONE, { NULL, 0 } };
    enum err err = parse_filter(&req->args, &filter);
    size_t work = GLOB_WORK;
    size_t place, count = 0;

    if (err == OK && filter.by == FILTER_PATTERN &&
        !glob_is_fair(filter.value)) {
        err = ERR_PATTERN_LONG;
    }
    if (err != OK) {
        return err;
    }
    place = reply_begin(req->reply);
    for (unsigned id = 0; id < CMD_ID_LISTED; id++) {
        if (command_is_listed(command_at(id)) &&
            filter_takes(&filter, command_at(id), &work)) {
            reply_bulk_text(req->reply,
                            dialect_command_name(req->service, command_at(id)));
            count++;
        }
    }
    reply_array_end(req->reply, place, count);
    return work > 0 ? OK : ERR_PATTERN_WORK;
}

struct keys_reply {
    struct reply *reply;
    const struct command *command;
    const struct slice *argv;
    size_t argc, count;
    bool with_flags;
};

/* Finds the command in the arguments. Fails if it has no keys. */
static enum err
find_keys(struct request *req, struct keys_reply *to)
{
    unsigned words;

    *to = (struct keys_reply){ .reply = req->reply,
                               .argv = req->argv + 2,
                               .argc = req->argc - 2,
                               .with_flags = req->command->id ==
                                             CMD_ID_COMMAND_GETKEYSANDFLAGS };
    to->command = command_resolve(to->argv, to->argc, &words);
    if (to->command == NULL || !command_is_listed(to->command)) {
        return request_fail(req, ERR_CUSTOM, "Invalid command specified");
    }
    if (to->command->keys.first == 0 || to->command->key_use == KEY_NOT) {
        return request_fail(req, ERR_CUSTOM,
                            "The command has no key arguments");
    }
    if (!dialect_arity_fits(req->service, to->command, to->argc)) {
        return request_fail(
            req, ERR_CUSTOM,
            "Invalid number of arguments specified for command");
    }
    return OK;
}

static void
reply_key(void *ctx, size_t position)
{
    struct keys_reply *to = ctx;
    if (to->with_flags) {
        reply_array(to->reply, 2);
    }
    reply_bulk(to->reply, to->argv[position]);
    if (to->with_flags) {
        reply_bits(to->reply, command_use_of_key(to->command, position), "",
                   key_use_names);
    }
    to->count++;
}

/* COMMAND GETKEYS and GETKEYSANDFLAGS. */
enum err
cmd_command_getkeys(struct request *req)
{
    struct keys_reply to;
    enum err err = find_keys(req, &to);

    if (err == OK) {
        size_t place = reply_begin(req->reply);

        command_each_key(to.command, to.argc, reply_key, &to);
        reply_array_end(req->reply, place, to.count);
    }
    return err;
}
