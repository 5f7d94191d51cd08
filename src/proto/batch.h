/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands parsed and not yet executed. One batch a loop, reused for each
 * read; its argv keeps its size from use to use. {0} is an empty one.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

enum { BATCH_COMMANDS_MAX = 128 };

/* One command in a batch: argv[first .. first + argc). */
struct batch_command {
    uint32_t first, argc;
    size_t begin; /* its first byte, in the data given to stream_parse */
    bool repeats; /* all words but the last are, byte for byte, those of the
                     command before it, behind which its own stand */
};

/* The arguments point into the data given to stream_parse or into the
 * stream's reader. */
struct batch {
    struct slice *argv; /* grows with arguments that arrived, never ahead */
    size_t argv_count, argv_capacity;
    struct slice *own; /* its argv, while another one is borrowed */
    size_t own_capacity;
    bool borrows;
    uint32_t count;
    bool in_place; /* the arguments lie amid the canonical RESP they came in */
    struct batch_command command[BATCH_COMMANDS_MAX];
};

/* Has argv's words, which stay the caller's, until it is emptied; it is empty.
 */
void batch_borrow(struct batch *batch, struct slice *argv, size_t argc);

/* Empties it; gives an argv back that one huge command made large. */
void batch_clear(struct batch *batch);
void batch_fini(struct batch *batch);

MUST_CHECK bool batch_grow(struct batch *batch, size_t more);

/* Room for `more` arguments behind argv_count; false if memory is short. */
MUST_CHECK static inline bool
batch_reserve(struct batch *batch, size_t more)
{
    return batch->argv_capacity - batch->argv_count >= more ||
           batch_grow(batch, more);
}

/* The canonical RESP of a command of a batch that is in place, found around
 * its arguments. */
struct slice batch_resp(const struct slice *argv, size_t argc);

/* The next `argc` arguments, already in place, are a command. */
static inline void
batch_add(struct batch *batch, size_t argc, size_t begin)
{
    batch->command[batch->count++] =
        (struct batch_command){ (uint32_t)batch->argv_count, (uint32_t)argc,
                                begin, false };
    batch->argv_count += argc;
}
