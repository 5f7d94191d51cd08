/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rules as text, for tests of users.
 */
#pragma once

#include "access/users.h"
#include "words_help.h"
#include "write_help.h"

/* Applies rules to a user of the table. Returns why they were refused, or "".
 */
static inline const char *
users_try(struct users *users, const char *name, const char *rules)
{
    struct slice words[USERS_WORDS];
    size_t count = users_words(rules, words);
    struct user_refusal refusal = { 0 };
    bool done = users_set(users, slice_of(name), words, count, &refusal);

    buf_free(&refusal.words);
    return done ? "" : refusal.reason != NULL ? refusal.reason : "no end";
}

static inline struct user *
users_must(struct users *users, const char *name, const char *rules)
{
    assert_string_equal("", users_try(users, name, rules));
    return users_find(users, slice_of(name));
}

static inline void
users_expect(const struct users *users, const char *name, const char *line)
{
    struct buf text = { 0 };

    user_put(users_find(users, slice_of(name)), &text);
    buf_append(&text, "", 1);
    assert_false(text.failed);
    assert_string_equal(line, text.data);
    buf_free(&text);
}

static inline struct users *
users_new_for_test(void)
{
    command_table_init(command_rows);
    return users_new();
}
