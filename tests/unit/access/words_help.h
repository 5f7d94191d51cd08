/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rules and commands as text, for tests of permissions.
 */
#pragma once

#include "../test.h"
#include "base/slice.h"
#include "command/rows.h"

enum { USERS_WORDS = 64 };

/* Cuts a text at blanks. */
static inline size_t
users_words(const char *text, struct slice ret_words[USERS_WORDS])
{
    struct slice left = slice_of(text);
    size_t count = 0;

    while (slice_next_word(&left, &ret_words[count])) {
        count++;
        assert_true(count < USERS_WORDS);
    }
    return count;
}
