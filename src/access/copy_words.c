/* SPDX-License-Identifier: BSD-3-Clause */
#include "access/copy_words.h"

enum copy_word
copy_words_next(const struct slice *argv, size_t argc, size_t *next,
                size_t *ret_at)
{
    size_t at = *next;

    if (at >= argc) {
        return COPY_WORDS_END;
    }
    if (slice_is_word(argv[at], "replace")) {
        *next = at + 1;
        return COPY_REPLACE;
    }
    if (at + 1 < argc && slice_is_word(argv[at], "db")) {
        *ret_at = at + 1;
        *next = at + 2;
        return COPY_DB;
    }
    *ret_at = at;
    return COPY_OTHER;
}
