/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the options behind the two keys of COPY, which may repeat. The check of
 * permissions and COPY itself both use it, so that both find the same database
 * of the destination. Pure.
 */
#pragma once

#include "base/slice.h"

enum copy_word {
    COPY_WORDS_END,
    COPY_REPLACE,
    COPY_DB,   /* the number is at *ret_at */
    COPY_OTHER /* an unknown word, at *ret_at; *next stays there */
};

enum { COPY_WORDS_BEGIN = 3 /* the first position in argv */ };

/* Reads the option at position *next, and moves *next behind it. */
enum copy_word copy_words_next(const struct slice *argv, size_t argc,
                               size_t *next, size_t *ret_at);
