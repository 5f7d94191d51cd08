/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The first mistake moves the cursor to the end, where every call fails.
 */
#include "proto/args.h"

static void
fail_args(struct args *args, enum err err)
{
    if (args->err == OK) {
        args->err = err;
    }
    args->next = args->count;
}

struct slice
args_bytes(struct args *args)
{
    if (args->next == args->count) {
        fail_args(args, ERR_SYNTAX);
        return slice_lit("");
    }
    return args->argv[args->next++];
}

int64_t
args_i64(struct args *args)
{
    struct slice text = args_bytes(args);
    int64_t value = 0;

    if (args->err == OK && !slice_to_i64(text, &value)) {
        fail_args(args, ERR_NOT_INTEGER);
    }
    return value;
}

bool
args_word(struct args *args, const char *word)
{
    if (args->next == args->count ||
        !slice_is_word(args->argv[args->next], word)) {
        return false;
    }
    args->next++;
    return true;
}

enum err
args_end(const struct args *args)
{
    if (args->err != OK) {
        return args->err;
    }
    return args->next == args->count ? OK : ERR_SYNTAX;
}
