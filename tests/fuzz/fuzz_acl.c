/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as an aclfile: it is refused with its path and a line, or what it
 * makes is written as a text that makes the same again. Its users then face
 * commands made of the same bytes.
 */
#include "../unit/access/write_help.h"
#include "access/users_file.h"
#include "base/err.h"
#include "base/mem.h"
#include "command/rows.h"
#include "target.h"

#include <string.h>

enum { WORDS = 6 };

/* Reads a text into a new table. */
static struct users *
read_users(struct slice text, struct buf *errors)
{
    struct users *users = users_new();
    struct users_draft draft = { 0 };

    if (!users_file_read(users, "f", text, &draft, errors)) {
        users_free(users);
        return NULL;
    }
    users_take(users, &draft);
    return users;
}

static void
check_again(const struct users *users)
{
    struct buf text = { 0 }, again = { 0 }, errors = { 0 };
    struct users *second;

    CHECK(write_all(users, &text, &errors));
    second = read_users(buf_slice(&text), &errors);
    CHECK(second != NULL && errors.len == 0);
    CHECK(write_all(second, &again, &errors));
    CHECK(slice_equal(buf_slice(&text), buf_slice(&again)));
    users_free(second);
    buf_free(&text);
    buf_free(&again);
}

/* The words of a command are pieces of the input. */
static void
check_command(const struct user *user, struct slice text, unsigned id)
{
    struct slice words[WORDS];
    struct permission_query query = { command_at(id), words, WORDS, id % 16 };
    size_t at = 0;
    enum denial denial;

    for (size_t i = 0; i < WORDS; i++) {
        size_t from = text.len * i / WORDS;

        words[i] = (struct slice){ text.data + from,
                                   text.len * (i + 1) / WORDS - from };
    }
    denial = user_check(user, &query, &at);
    CHECK(at < WORDS);
    if (user->unrestricted || (query.command->flags & CMD_NO_AUTH) != 0) {
        CHECK(denial == DENIED_NOTHING);
    }
    CHECK(denial != DENIED_KEY || query.command->keys.first > 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *)data, size };
    struct buf errors = { 0 };
    struct users *users;
    struct user **list;
    size_t count = 0;

    command_table_init(command_rows);
    users = read_users(text, &errors);
    if (users == NULL) {
        CHECK(errors.len > 3 && errors.data[0] == 'f' && errors.data[1] == ':');
        buf_free(&errors);
        return 0;
    }
    CHECK(errors.len == 0);
    check_again(users);
    list = users_sorted(users, &count);
    CHECK(list != NULL && count > 0);
    for (size_t i = 0; i < count; i++) {
        for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
            check_command(list[i], text, id);
        }
    }
    mem_free(list);
    users_free(users);
    return 0;
}
