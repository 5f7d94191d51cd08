/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands that are parsed and not executed yet. A loop reuses one batch for
 * all reads, and its argv keeps its size. {0} is empty.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

enum { BATCH_COMMANDS_MAX = 128 };

/* One command in a batch: argv[first .. first + argc). */
struct batch_command {
    uint32_t first, argc;
    size_t begin; /* its first byte, in the data given to stream_parse */
    bool repeats; /* all words but the last are those of the command before it,
                     whose words precede it in argv */
};

/* The arguments point into the data given to stream_parse, or into the arena
 * where the stream gathers a command that came in pieces. */
struct batch {
    struct slice *argv; /* grows as arguments arrive, never before */
    size_t argv_count, argv_capacity;
    struct slice *own; /* its own argv, while argv is a borrowed one */
    size_t own_capacity;
    bool borrows;
    uint32_t count;
    bool in_place; /* argv points into commands in canonical RESP */
    struct batch_command command[BATCH_COMMANDS_MAX];
};

/* Lets an empty batch use the caller's argv until the batch is emptied. */
void batch_borrow(struct batch *batch, struct slice *argv, size_t argc);

/* Empties the batch, and frees an argv that one huge command made large. */
void batch_clear(struct batch *batch);
void batch_fini(struct batch *batch);

MUST_CHECK bool batch_grow(struct batch *batch, size_t more);

/* Makes space for `more` arguments after argv_count. False: there is no memory.
 */
MUST_CHECK static inline bool
batch_reserve(struct batch *batch, size_t more)
{
    return batch->argv_capacity - batch->argv_count >= more ||
           batch_grow(batch, more);
}

/* Returns the bytes of a whole command from its arguments. The batch must be
 * in_place. */
struct slice batch_resp(const struct slice *argv, size_t argc);

/* Adds a command, whose words are the next `argc` arguments, which the caller
 * has written. */
static inline void
batch_add(struct batch *batch, size_t argc, size_t begin)
{
    batch->command[batch->count++] =
        (struct batch_command){ (uint32_t)batch->argv_count, (uint32_t)argc,
                                begin, false };
    batch->argv_count += argc;
}
