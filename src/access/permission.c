/* SPDX-License-Identifier: BSD-3-Clause
 *
 * As in Redis, a key that a command neither reads nor writes, such as the key
 * of EXISTS, is permitted by each pattern that matches, whatever its access.
 * If matching a key or channel takes too much work, it is denied.
 */
#include "access/permission.h"

#include "access/copy_words.h"
#include "base/glob.h"

/* ---- commands ------------------------------------------------------------ */

/* Compares the first argument with the permitted ones, for rules such as
 * +select|0. */
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

static unsigned
access_of(uint32_t use)
{
    unsigned access = (use & KEY_ACCESS) != 0 ? KEY_READS : 0;

    return (use & (KEY_INSERT | KEY_DELETE | KEY_UPDATE)) != 0
               ? access | KEY_WRITES
               : access;
}

static bool
has_key(const struct selector *selector, struct slice key, unsigned access,
        int64_t *work)
{
    size_t left = GLOB_WORK;
    struct slice item;
    bool found = false;

    for (size_t at = 0; !found && buf_next_item(&selector->keys, &at, &item);) {
        struct slice pattern = { item.data + 1, item.len - 1 };

        --*work;
        found = ((unsigned char)item.data[0] & access) == access &&
                glob_match(pattern, key, false, &left) == GLOB_YES;
    }
    *work -= (int64_t)(GLOB_WORK - left);
    return found;
}

/* Returns the position of the first denied key at or behind *next; 0 if there
 * is none or the work was used up. *next is where to go on. */
static size_t
denied_key(const struct selector *selector,
           const struct permission_query *query, size_t *next, int64_t *work)
{
    const struct command *command = query->command;
    size_t at;

    if (selector->all_keys || command->key_use == KEY_NOT) {
        return 0;
    }
    while ((at = command_key_from(command, query->argc, *next)) > 0) {
        unsigned access = access_of(command_use_of_key(command, at));

        *next = at;
        if (--*work < 0) {
            return 0;
        }
        if (!has_key(selector, query->argv[at], access, work)) {
            return at;
        }
        *next = at + 1;
    }
    return 0;
}

/* ---- channels ------------------------------------------------------------ */

static bool
has_channel(const struct selector *selector, struct slice channel,
            bool is_pattern, int64_t *work)
{
    size_t left = GLOB_WORK;
    struct slice item;
    bool found = selector->all_channels;

    for (size_t at = 0;
         !found && buf_next_item(&selector->channels, &at, &item);) {
        --*work;
        found = is_pattern
                    ? slice_equal(item, channel)
                    : glob_match(item, channel, false, &left) == GLOB_YES;
    }
    *work -= (int64_t)(GLOB_WORK - left);
    return found;
}

bool
permission_has_channel(const struct selector *selector, struct slice channel,
                       bool is_pattern)
{
    int64_t work = PERMISSION_ANY_WORK;

    return has_channel(selector, channel, is_pattern, &work);
}

/* Does for channels what denied_key does for keys. */
static size_t
denied_channel(const struct selector *selector,
               const struct permission_query *query, size_t *next,
               int64_t *work)
{
    unsigned id = query->command->id;
    bool one = id == CMD_ID_PUBLISH || id == CMD_ID_SPUBLISH;
    size_t end = one ? 2 : query->argc;

    if (!one && id != CMD_ID_SUBSCRIBE && id != CMD_ID_PSUBSCRIBE &&
        id != CMD_ID_SSUBSCRIBE) {
        return 0;
    }
    for (size_t i = *next > 0 ? *next : 1; i < end && i < query->argc; i++) {
        *next = i;
        if (--*work < 0) {
            return 0;
        }
        if (!has_channel(selector, query->argv[i], id == CMD_ID_PSUBSCRIBE,
                         work)) {
            return i;
        }
        *next = i + 1;
    }
    return 0;
}

/* ---- databases ----------------------------------------------------------- */

static bool
has_db(const struct selector *selector, uint64_t db)
{
    return db < SELECTOR_DBS && (selector->dbs[db / 64] >> db % 64 & 1) != 0;
}

/* Returns whether the word at `at` names a denied database. A word that is no
 * number names no database: its command refuses it. */
static bool
is_denied_word(const struct selector *selector,
               const struct permission_query *query, size_t at)
{
    uint64_t db;

    return at < query->argc && slice_to_u64(query->argv[at], &db) &&
           !has_db(selector, db);
}

/* Returns the position of the first word by which COPY names a denied database;
 * 0: there is none. */
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
 * others, and FLUSHALL needs all. *ret_at is the word that names the denied
 * database; 0 if it is the session's. */
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
                 const struct permission_query *query, size_t *next,
                 int64_t *work, size_t *ret_at)
{
    size_t at;

    *ret_at = 0;
    if (--*work < 0) {
        return UNDECIDED;
    }
    if (!has_command(selector, query)) {
        return DENIED_COMMAND;
    }
    at = denied_key(selector, query, next, work);
    if (at > 0) {
        *ret_at = at;
        return DENIED_KEY;
    }
    /* A command names keys or channels, never both, so *next serves for either.
     */
    at = *work < 0 ? 0 : denied_channel(selector, query, next, work);
    if (at > 0) {
        *ret_at = at;
        return DENIED_CHANNEL;
    }
    if (*work < 0) {
        return UNDECIDED;
    }
    return selector->some_dbs && denies_db(selector, query, ret_at)
               ? DENIED_DB
               : DENIED_NOTHING;
}
