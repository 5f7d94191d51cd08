/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A cursor over the arguments of one command, without its name. After the first
 * mistake every call returns an empty value, and args_end returns that mistake:
 * so a handler reads all arguments and checks once. The slices point into the
 * request and are valid until the handler returns.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

struct args {
    const struct slice *argv;
    size_t count;
    size_t next;
    enum err err;
};

static inline struct args
args_of(const struct slice *argv, size_t count)
{
    return (struct args){ argv, count, 0, OK };
}

static inline size_t
args_left(const struct args *args)
{
    return args->count - args->next;
}

/* Returns the next argument; ERR_SYNTAX when there is none. */
struct slice args_bytes(struct args *args);

/* Returns the next argument as a strict decimal (ERR_NOT_INTEGER). */
int64_t args_i64(struct args *args);

/* Moves past the next argument if it is this word, in any letter case; returns
 * whether it is. */
bool args_word(struct args *args, const char *word);

/* Returns the first mistake; ERR_SYNTAX if arguments are left. */
MUST_CHECK enum err args_end(const struct args *args);
