/* SPDX-License-Identifier: BSD-3-Clause
 *
 * enum err has the errors that clients and the system cause: one value for each
 * row of tbl/errors.def; OK is 0. CHECK is for our own bugs: it prints the
 * file, the line and the expression, and aborts, in release builds too.
 */
#pragma once

#define MUST_CHECK __attribute__((warn_unused_result))

enum err {
    OK = 0,
#define ERR(id, prefix, text) ERR_##id,
#include "tbl/errors.def"
#undef ERR
    ERR_COUNT
};

/* Returns the first word of the error reply ("ERR", "WRONGTYPE", ...); may be
 * "". */
const char *err_prefix(enum err err);

/* Returns the text after that word; may contain %s. */
const char *err_text(enum err err);

__attribute__((noreturn)) void err_check_failed(const char *file, int line,
                                                const char *expression);

#define CHECK(x)                                                               \
    (__builtin_expect(!(x), 0) ? err_check_failed(__FILE__, __LINE__, #x)      \
                               : (void)0)
