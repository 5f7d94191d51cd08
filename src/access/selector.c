/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rules of commands are kept as texts beside the bits, since a later version
 * may have more commands. A rule replaces an earlier one of the same name. A
 * rule of a command also replaces those of its subcommands.
 */
#include "access/selector.h"

#include "access/peer_names.h"
#include "base/glob.h"
#include "base/mem.h"

#include <stdio.h>

const char SELECTOR_NO_MEMORY[] = "not enough memory";
const char SELECTOR_SYNTAX[] = "Syntax error";
const char SELECTOR_UNKNOWN_COMMAND[] =
    "Unknown command or category name in ACL";
static const char FIRST_ARG_OF_SUB[] =
    "Allowing first-arg of a subcommand is not supported";
static const char AFTER_ALL_KEYS[] =
    "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid "
    "and does not have any effect. Try 'resetkeys' to start with an empty list "
    "of patterns";
static const char AFTER_ALL_CHANNELS[] =
    "Adding a pattern after the * pattern (or the 'allchannels' flag) is not "
    "valid and does not have any effect. Try 'resetchannels' to start with an "
    "empty list of channels";
static const char HARD_PATTERN[] =
    "A pattern is longer than 1024 bytes or takes too much work: use fewer ? "
    "and [] between two *";
static const char BAD_DB[] = "The provided database ID is out of range";

enum { KEY_TYPICAL = 1024 /* bytes of a long key */ };

/* ---- lists of items ------------------------------------------------------ */

void
selector_settle(struct selector *selector)
{
    item_index_fini(&selector->known_keys);
    item_index_fini(&selector->known_channels);
}

void
selector_fini(struct selector *selector)
{
    selector_settle(selector);
    buf_free(&selector->rules);
    buf_free(&selector->words);
    buf_free(&selector->keys);
    buf_free(&selector->channels);
    *selector = (struct selector){ 0 };
}

void
selector_free_list(struct selector *first)
{
    while (first != NULL) {
        struct selector *next = first->next;

        selector_fini(first);
        mem_free(first);
        first = next;
    }
}

static bool
copy_list(const struct buf *from, struct buf *to)
{
    *to = (struct buf){ 0 };
    buf_append_slice(to, buf_slice(from));
    return !to->failed;
}

bool
selector_copy(const struct selector *from, struct selector *ret_selector)
{
    struct selector copy = *from;
    bool done;

    copy.next = NULL;
    copy.known_keys = copy.known_channels = (struct item_index){ 0 };
    done = copy_list(&from->rules, &copy.rules);
    done = copy_list(&from->words, &copy.words) && done;
    done = copy_list(&from->keys, &copy.keys) && done;
    done = copy_list(&from->channels, &copy.channels) && done;
    if (!done) {
        selector_fini(&copy);
        return false;
    }
    *ret_selector = copy;
    return true;
}

static void
empty(struct buf *list)
{
    buf_free(list);
    *list = (struct buf){ 0 };
}

/* Adds an item. Without memory the list is as before. */
static const char *
add_item(struct buf *list, struct slice item)
{
    size_t before = list->len;

    buf_append_item(list, item);
    if (list->failed) {
        list->failed = false;
        list->len = before;
        return SELECTOR_NO_MEMORY;
    }
    return NULL;
}

static bool
has_item(const struct buf *list, struct slice wanted)
{
    struct slice item;

    for (size_t at = 0; buf_next_item(list, &at, &item);) {
        if (slice_equal(item, wanted)) {
            return true;
        }
    }
    return false;
}

/* Removes the items that `drops` takes, in place. */
static void
drop_items(struct buf *list, bool (*drops)(struct slice item, const void *ctx),
           const void *ctx)
{
    size_t kept = 0, from = 0, at = 0;
    struct slice item;

    for (; buf_next_item(list, &at, &item); from = at) {
        if (!drops(item, ctx)) {
            memmove(list->data + kept, list->data + from, at - from);
            kept += at - from;
        }
    }
    list->len = kept;
}

/* ---- commands ------------------------------------------------------------ */

static void
set_bit(struct selector *selector, unsigned id, bool allow)
{
    uint64_t bit = (uint64_t)1 << id % 64;

    if (allow) {
        selector->commands[id / 64] |= bit;
    } else {
        selector->commands[id / 64] &= ~bit;
    }
}

static bool
is_sub_of(const struct command *sub, const struct command *container)
{
    size_t len = strlen(container->name);

    return strncmp(sub->name, container->name, len) == 0 &&
           sub->name[len] == '|';
}

/* Whether the item permits a first argument of this command, as "select|0" does
 * for "select". */
static bool
is_word_of(struct slice item, const void *ctx)
{
    const struct command *command = ctx;
    size_t len = strlen(command->name);

    return item.len > len && item.data[len] == '|' &&
           slice_is_word((struct slice){ item.data, len }, command->name);
}

/* Sets the bits of a command and its subcommands, which follow it. */
static void
set_command(struct selector *selector, const struct command *command,
            bool allow)
{
    set_bit(selector, command->id, allow);
    drop_items(&selector->words, is_word_of, command);
    for (unsigned id = command->id + 1;
         command->container && id < CMD_ID_COUNT &&
         is_sub_of(command_at(id), command);
         id++) {
        set_bit(selector, id, allow);
    }
}

/* Whether a later rule makes this item superfluous: without its sign, the item
 * names the same, or a subcommand of it. */
static bool
is_replaced(struct slice item, const void *ctx)
{
    const struct slice *later = ctx; /* without a sign */

    return item.len > later->len &&
           memcmp(item.data + 1, later->data, later->len) == 0 &&
           (item.len == later->len + 1 || item.data[later->len + 1] == '|');
}

/* Keeps a rule, in lower case, as the last one. */
static const char *
keep_rule(struct selector *selector, struct slice rule)
{
    enum { RULE_MAX = 128 };
    char folded[RULE_MAX];
    struct slice item = { folded, rule.len };
    struct slice name = { folded + 1, rule.len - 1 };

    if (rule.len > RULE_MAX) {
        return SELECTOR_SYNTAX;
    }
    for (size_t i = 0; i < rule.len; i++) {
        folded[i] = slice_fold(rule.data[i]);
    }
    if (buf_reserve(&selector->rules, rule.len + sizeof(uint64_t)) == NULL) {
        selector->rules.failed = false;
        return SELECTOR_NO_MEMORY;
    }
    drop_items(&selector->rules, is_replaced, &name);
    return add_item(&selector->rules, item);
}

static void
set_all_commands(struct selector *selector, bool allow)
{
    memset(selector->commands, allow ? 0xff : 0, sizeof(selector->commands));
    empty(&selector->rules);
    empty(&selector->words);
    selector->all_commands = allow;
    selector->from_all = allow;
}

/* Keeps the rule of a command or category that only other servers have. */
static const char *
apply_peer_name(struct selector *selector, struct slice rule)
{
    return peer_names_have((struct slice){ rule.data + 1, rule.len - 1 })
               ? keep_rule(selector, rule)
               : SELECTOR_UNKNOWN_COMMAND;
}

/* Applies +@name and -@name. */
static const char *
apply_category(struct selector *selector, struct slice rule, bool allow)
{
    struct slice name = { rule.data + 2, rule.len - 2 };
    const char *known, *error;
    unsigned bit = 0;

    if (slice_is_word(name, "all")) {
        set_all_commands(selector, allow);
        return NULL;
    }
    while ((known = command_category_name(bit)) != NULL &&
           !slice_is_word(name, known)) {
        bit++;
    }
    if (known == NULL) {
        return apply_peer_name(selector, rule);
    }
    error = keep_rule(selector, rule);
    for (unsigned id = 0; error == NULL && id < CMD_ID_COUNT; id++) {
        if ((command_at(id)->acl >> bit & 1) != 0) {
            set_command(selector, command_at(id), allow);
        }
    }
    selector->all_commands = selector->all_commands && allow;
    return error;
}

/* Finds "get" or "client|id". */
static const struct command *
find_command(struct slice name)
{
    const char *bar = memchr(name.data, '|', name.len);
    const struct command *container;
    size_t len;

    if (bar == NULL) {
        return command_find(name);
    }
    len = (size_t)(bar - name.data);
    container = command_find((struct slice){ name.data, len });
    return container == NULL || !container->container
               ? NULL
               : command_find_sub(
                     container, (struct slice){ bar + 1, name.len - len - 1 });
}

/* Applies +select|0: a command that is permitted only with this first argument.
 */
static const char *
apply_first_word(struct selector *selector, const struct command *command,
                 struct slice rule)
{
    struct slice item = { rule.data + 1, rule.len - 1 };
    const char *error =
        slice_has_space(item) ? SELECTOR_SYNTAX : keep_rule(selector, rule);

    if (error == NULL && !selector_has_command(selector, command->id) &&
        !has_item(&selector->words, item)) {
        error = add_item(&selector->words, item);
    }
    return error;
}

static const char *
apply_command(struct selector *selector, struct slice rule, bool allow)
{
    struct slice name = { rule.data + 1, rule.len - 1 };
    const struct command *command = find_command(name), *before;
    size_t bar = name.len;
    const char *error;

    while (bar > 0 && name.data[bar - 1] != '|') {
        bar--;
    }
    if (bar > 0 && allow) {
        before = find_command((struct slice){ name.data, bar - 1 });
        if (before == NULL) {
            return apply_peer_name(selector, rule);
        }
        if (strchr(before->name, '|') != NULL) {
            return FIRST_ARG_OF_SUB;
        }
        if (bar == name.len) {
            return SELECTOR_SYNTAX;
        }
        if (!before->container) {
            return apply_first_word(selector, before, rule);
        }
    }
    if (command == NULL) {
        return apply_peer_name(selector, rule);
    }
    error = keep_rule(selector, rule);
    if (error == NULL) {
        set_command(selector, command, allow);
        selector->all_commands = selector->all_commands && allow;
    }
    return error;
}

/* ---- keys, channels, databases ------------------------------------------- */

static const char *
check_pattern(struct slice pattern)
{
    if (slice_has_space(pattern)) {
        return SELECTOR_SYNTAX;
    }
    return glob_is_fair(pattern) &&
                   (glob_is_plain(pattern) ||
                    glob_work_max(pattern, KEY_TYPICAL) <= GLOB_WORK)
               ? NULL
               : HARD_PATTERN;
}

/* Reads the next pattern, without its access. */
static bool
next_pattern(const struct buf *keys, size_t *at, struct slice *ret_pattern)
{
    struct slice item;

    if (!buf_next_item(keys, at, &item)) {
        return false;
    }
    *ret_pattern = (struct slice){ item.data + 1, item.len - 1 };
    return true;
}

/* Adds a pattern, or adds access to an existing one. */
static const char *
add_key(struct selector *selector, struct slice pattern, unsigned access)
{
    struct buf item = { 0 };
    char first = (char)access;
    const char *error;
    size_t place = item_index_find(&selector->known_keys, &selector->keys,
                                   next_pattern, pattern);

    if (place != SIZE_MAX) {
        char *there = &selector->keys.data[place - 1];

        *there = (char)(*there | first);
        return NULL;
    }
    buf_append(&item, &first, 1);
    buf_append_slice(&item, pattern);
    error = item.failed ? SELECTOR_NO_MEMORY
                        : add_item(&selector->keys, buf_slice(&item));
    buf_free(&item);
    return error;
}

/* Applies ~pattern, %R~pattern, %W~pattern and %RW~pattern. */
static const char *
apply_keys(struct selector *selector, struct slice rule)
{
    unsigned access = rule.data[0] == '~' ? KEY_READS | KEY_WRITES : 0;
    struct slice pattern = { rule.data + 1, rule.len - 1 };
    const char *error;

    while (rule.data[0] == '%' && pattern.len > 0) {
        char c = slice_fold(pattern.data[0]);
        unsigned more = c == 'r' ? KEY_READS : c == 'w' ? KEY_WRITES : 0;

        if (c != '~' && (more == 0 || (access & more) != 0)) {
            return SELECTOR_SYNTAX;
        }
        access |= more;
        pattern.data++;
        pattern.len--;
        if (c == '~') {
            break;
        }
    }
    if (selector->all_keys) {
        return AFTER_ALL_KEYS;
    }
    error = access == 0 ? SELECTOR_SYNTAX : check_pattern(pattern);
    return error != NULL ? error : add_key(selector, pattern, access);
}

static const char *
apply_channel(struct selector *selector, struct slice rule)
{
    struct slice pattern = { rule.data + 1, rule.len - 1 };
    const char *error;

    if (selector->all_channels) {
        return AFTER_ALL_CHANNELS;
    }
    error = check_pattern(pattern);
    if (error != NULL ||
        item_index_find(&selector->known_channels, &selector->channels,
                        buf_next_item, pattern) != SIZE_MAX) {
        return error;
    }
    return add_item(&selector->channels, pattern);
}

/* Applies db=0,1,2, which adds these databases; the first such rule takes away
 * all others. */
static const char *
apply_dbs(struct selector *selector, struct slice ids)
{
    uint64_t dbs[SELECTOR_DBS / 64] = { 0 };

    for (size_t from = 0; from <= ids.len;) {
        const char *comma = memchr(ids.data + from, ',', ids.len - from);
        size_t end = comma != NULL ? (size_t)(comma - ids.data) : ids.len;
        uint64_t id;

        if (!slice_to_u64((struct slice){ ids.data + from, end - from }, &id)) {
            return SELECTOR_SYNTAX;
        }
        if (id >= SELECTOR_DBS) {
            return BAD_DB;
        }
        dbs[id / 64] |= (uint64_t)1 << id % 64;
        from = end + 1;
    }
    for (size_t i = 0; i < SELECTOR_DBS / 64; i++) {
        selector->dbs[i] = (selector->some_dbs ? selector->dbs[i] : 0) | dbs[i];
    }
    selector->some_dbs = true;
    return NULL;
}

/* ---- all rules ----------------------------------------------------------- */

/* Applies the rule if it is one of these words, else returns false. */
static bool
apply_word(struct selector *selector, struct slice rule)
{
    bool all_keys =
        slice_is_word(rule, "allkeys") || slice_equal(rule, slice_lit("~*"));
    bool all_channels = slice_is_word(rule, "allchannels") ||
                        slice_equal(rule, slice_lit("&*"));
    bool all_dbs = slice_is_word(rule, "alldbs");

    if (all_keys || slice_is_word(rule, "resetkeys")) {
        empty(&selector->keys);
        item_index_fini(&selector->known_keys);
        selector->all_keys = all_keys;
    } else if (all_channels || slice_is_word(rule, "resetchannels")) {
        empty(&selector->channels);
        item_index_fini(&selector->known_channels);
        selector->all_channels = all_channels;
    } else if (all_dbs || slice_is_word(rule, "resetdbs")) {
        memset(selector->dbs, 0, sizeof(selector->dbs));
        selector->some_dbs = !all_dbs;
    } else if (slice_is_word(rule, "allcommands")) {
        set_all_commands(selector, true);
    } else if (slice_is_word(rule, "nocommands")) {
        set_all_commands(selector, false);
    } else {
        return false;
    }
    return true;
}

const char *
selector_apply(struct selector *selector, struct slice rule)
{
    if (rule.len == 0 || apply_word(selector, rule)) {
        return NULL;
    }
    switch (rule.data[0]) {
    case '~':
    case '%':
        return apply_keys(selector, rule);
    case '&':
        return apply_channel(selector, rule);
    case '+':
    case '-':
        return rule.len > 1 && rule.data[1] == '@'
                   ? apply_category(selector, rule, rule.data[0] == '+')
                   : apply_command(selector, rule, rule.data[0] == '+');
    default:
        break;
    }
    if (rule.len > 3 && slice_is_word((struct slice){ rule.data, 3 }, "db=")) {
        return apply_dbs(selector,
                         (struct slice){ rule.data + 3, rule.len - 3 });
    }
    return SELECTOR_SYNTAX;
}

/* ---- as text ------------------------------------------------------------- */

static void
put_word(struct buf *text, const char *before, struct slice word, bool *first)
{
    buf_append_slice(text, slice_of(*first ? "" : " "));
    buf_append_slice(text, slice_of(before));
    buf_append_slice(text, word);
    *first = false;
}

void
selector_put_commands(const struct selector *selector, struct buf *text)
{
    struct slice item;
    bool first = true;

    put_word(text, "", slice_of(selector->from_all ? "+@all" : "-@all"),
             &first);
    for (size_t at = 0; buf_next_item(&selector->rules, &at, &item);) {
        put_word(text, "", item, &first);
    }
}

/* Writes the pattern * of %RW~* in full: a bare ~* permits no other pattern
 * beside it. */
void
selector_put_keys(const struct selector *selector, struct buf *text)
{
    static const char *const before[] = { "", "%R~", "%W~", "~" };
    struct slice item;
    bool first = true;

    if (selector->all_keys) {
        put_word(text, "", slice_lit("~*"), &first);
    }
    for (size_t at = 0; buf_next_item(&selector->keys, &at, &item);) {
        struct slice pattern = { item.data + 1, item.len - 1 };
        const char *how = before[(unsigned char)item.data[0]];

        if (how[0] == '~' && slice_equal(pattern, slice_lit("*"))) {
            how = "%RW~";
        }
        put_word(text, how, pattern, &first);
    }
}

void
selector_put_channels(const struct selector *selector, struct buf *text)
{
    struct slice item;
    bool first = true;

    if (selector->all_channels) {
        put_word(text, "", slice_lit("&*"), &first);
    }
    for (size_t at = 0; buf_next_item(&selector->channels, &at, &item);) {
        put_word(text, "&", item, &first);
    }
}

void
selector_put_dbs(const struct selector *selector, struct buf *text)
{
    const char *before = "db=";

    for (unsigned id = 0; selector->some_dbs && id < SELECTOR_DBS; id++) {
        if ((selector->dbs[id / 64] >> id % 64 & 1) != 0) {
            buf_printf(text, "%s%u", before, id);
            before = ",";
        }
    }
    if (before[0] != ',') {
        buf_append_slice(text,
                         slice_of(selector->some_dbs ? "resetdbs" : "alldbs"));
    }
}

void
selector_put(const struct selector *selector, struct buf *text)
{
    size_t before = text->len;

    selector_put_keys(selector, text);
    buf_append_slice(text, slice_of(text->len > before ? " " : ""));
    if (!selector->all_channels) {
        buf_append_slice(text, slice_of("resetchannels "));
    }
    before = text->len;
    selector_put_channels(selector, text);
    buf_append_slice(text, slice_of(text->len > before ? " " : ""));
    if (selector->some_dbs) {
        selector_put_dbs(selector, text);
        buf_append_slice(text, slice_of(" "));
    }
    selector_put_commands(selector, text);
}

bool
selector_is_free(const struct selector *selector)
{
    return selector->all_commands && selector->all_keys &&
           selector->all_channels && !selector->some_dbs &&
           !command_any_forbidden();
}
