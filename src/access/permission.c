/* SPDX-License-Identifier: BSD-3-Clause
 *
 * As in Redis, a key that a command neither reads nor writes, such as the key
 * of EXISTS, needs any pattern that matches. What takes too much work to match
 * is denied.
 */
#include "access/permission.h"

#include "access/copy_words.h"
#include "base/glob.h"

/* ---- commands ------------------------------------------------------------ */

/* +select|0: compares the first argument with the permitted ones. */
static bool
has_first_word(const struct selector *selector,
               const struct permission_query *query)
{
    struct slice name = slice_of(query->command->name), item;

    if (selector->words.len == 0 || query->argc < 2) {
        return false;
    }
    for (size_t at = 0; buf_next_item(&selector->words, &at, &item);) {
        struct slice word = query->argv[1];

        if (item.len == name.len + 1 + word.len &&
            slice_is_word((struct slice){ item.data, name.len }, name.data) &&
            item.data[name.len] == '|') {
            size_t i = 0;

            while (i < word.len &&
                   slice_fold(word.data[i]) ==
                       slice_fold(item.data[name.len + 1 + i])) {
                i++;
            }
            if (i == word.len) {
                return true;
            }
        }
    }
    return false;
}

static bool
has_command(const struct selector *selector,
            const struct permission_query *query)
{
    return selector->all_commands ||
           selector_has_command(selector, query->command->id) ||
           (query->command->flags & CMD_NO_AUTH) != 0 ||
           has_first_word(selector, query);
}

/* ---- keys ---------------------------------------------------------------- */

struct key_check {
    const struct selector *selector;
    const struct permission_query *query;
    size_t denied; /* the first denied position; 0: none */
};

static unsigned
access_of(uint32_t use)
{
    unsigned access = (use & KEY_ACCESS) != 0 ? KEY_READS : 0;

    return (use & (KEY_INSERT | KEY_DELETE | KEY_UPDATE)) != 0
               ? access | KEY_WRITES
               : access;
}

static bool
has_key(const struct selector *selector, struct slice key, unsigned access)
{
    size_t work = GLOB_WORK;
    struct slice item;

    for (size_t at = 0; buf_next_item(&selector->keys, &at, &item);) {
        struct slice pattern = { item.data + 1, item.len - 1 };

        if (((unsigned char)item.data[0] & access) == access &&
            glob_match(pattern, key, false, &work) == GLOB_YES) {
            return true;
        }
    }
    return false;
}

static void
check_key(void *ctx, size_t at)
{
    struct key_check *check = ctx;
    uint32_t use = command_use_of_key(check->query->command, at);

    if (check->denied == 0 &&
        !has_key(check->selector, check->query->argv[at], access_of(use))) {
        check->denied = at;
    }
}

/* Returns the position of the first key that is denied; 0: none. */
static size_t
denied_key(const struct selector *selector,
           const struct permission_query *query)
{
    const struct command *command = query->command;
    struct key_check check = { .selector = selector, .query = query };

    if (selector->all_keys || command->key_use == KEY_NOT) {
        return 0;
    }
    command_each_key(command, query->argc, check_key, &check);
    return check.denied;
}

/* ---- channels ------------------------------------------------------------ */

bool
permission_has_channel(const struct selector *selector, struct slice channel,
                       bool is_pattern)
{
    size_t work = GLOB_WORK;
    struct slice item;

    if (selector->all_channels) {
        return true;
    }
    for (size_t at = 0; buf_next_item(&selector->channels, &at, &item);) {
        if (is_pattern ? slice_equal(item, channel)
                       : glob_match(item, channel, false, &work) == GLOB_YES) {
            return true;
        }
    }
    return false;
}

static size_t
denied_channel(const struct selector *selector,
               const struct permission_query *query)
{
    unsigned id = query->command->id;
    bool one = id == CMD_ID_PUBLISH || id == CMD_ID_SPUBLISH;
    size_t end = one ? 2 : query->argc;

    if (!one && id != CMD_ID_SUBSCRIBE && id != CMD_ID_PSUBSCRIBE &&
        id != CMD_ID_SSUBSCRIBE) {
        return 0;
    }
    for (size_t i = 1; i < end && i < query->argc; i++) {
        if (!permission_has_channel(selector, query->argv[i],
                                    id == CMD_ID_PSUBSCRIBE)) {
            return i;
        }
    }
    return 0;
}

/* ---- databases ----------------------------------------------------------- */

static bool
has_db(const struct selector *selector, uint64_t db)
{
    return db < SELECTOR_DBS && (selector->dbs[db / 64] >> db % 64 & 1) != 0;
}

/* Whether the word at `at` names a denied database. A word that is no number
 * names none: its command refuses it. */
static bool
is_denied_word(const struct selector *selector,
               const struct permission_query *query, size_t at)
{
    uint64_t db;

    return at < query->argc && slice_to_u64(query->argv[at], &db) &&
           !has_db(selector, db);
}

/* Returns the first of the words with which COPY names a denied database; 0:
 * there is none. */
static size_t
denied_db_of_copy(const struct selector *selector,
                  const struct permission_query *query)
{
    size_t next = COPY_WORDS_BEGIN, at;
    enum copy_word word;

    do {
        word = copy_words_next(query->argv, query->argc, &next, &at);
        if (word == COPY_DB && is_denied_word(selector, query, at)) {
            return at;
        }
    } while (word == COPY_DB || word == COPY_REPLACE);
    return 0;
}

/* Commands that read or change data need the session's database; some name
 * others, and FLUSHALL needs all. The position is 0 for the session's. */
static bool
denies_db(const struct selector *selector, const struct permission_query *query,
          size_t *ret_at)
{
    const struct command *command = query->command;
    bool data = (command->flags & (CMD_READONLY | CMD_WRITE)) != 0 ||
                (command->keys.first > 0 && command->key_use != KEY_NOT);
    size_t named[2] = { 0, 0 };

    switch (command->id) {
    case CMD_ID_FLUSHALL:
        *ret_at = 0;
        return true;
    case CMD_ID_SWAPDB:
        data = false;
        named[0] = 1;
        named[1] = 2;
        break;
    case CMD_ID_SELECT:
        named[0] = 1;
        break;
    case CMD_ID_MOVE:
        named[0] = 2;
        break;
    case CMD_ID_COPY:
        named[0] = denied_db_of_copy(selector, query);
        break;
    default:
        break;
    }
    for (unsigned i = 0; i < 2; i++) {
        if (named[i] > 0 && is_denied_word(selector, query, named[i])) {
            *ret_at = named[i];
            return true;
        }
    }
    *ret_at = 0;
    return data && !has_db(selector, query->db);
}

/* ---- all ----------------------------------------------------------------- */

enum denial
permission_check(const struct selector *selector,
                 const struct permission_query *query, size_t *ret_at)
{
    size_t at;

    *ret_at = 0;
    if (command_is_forbidden(query->command->id) ||
        !has_command(selector, query)) {
        return DENIED_COMMAND;
    }
    at = denied_key(selector, query);
    if (at > 0) {
        *ret_at = at;
        return DENIED_KEY;
    }
    at = denied_channel(selector, query);
    if (at > 0) {
        *ret_at = at;
        return DENIED_CHANNEL;
    }
    return selector->some_dbs && denies_db(selector, query, ret_at)
               ? DENIED_DB
               : DENIED_NOTHING;
}
