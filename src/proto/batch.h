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
    bool repeats; /* all words but the last equal those of the command before
                     it, which its own words follow in argv */
};

/* The arguments point into the data given to stream_parse or into the
 * stream's reader. */
struct batch {
    struct slice *argv; /* grows as arguments arrive, never before */
    size_t argv_count, argv_capacity;
    struct slice *own; /* the batch's argv, while it borrows another one */
    size_t own_capacity;
    bool borrows;
    uint32_t count;
    bool
        in_place; /* the arguments lie in the canonical RESP of their command */
    struct batch_command command[BATCH_COMMANDS_MAX];
};

/* Lets an empty batch use the caller's argv until the batch is emptied. */
void batch_borrow(struct batch *batch, struct slice *argv, size_t argc);

/* Empties the batch, and frees an argv that one huge command made large. */
void batch_clear(struct batch *batch);
void batch_fini(struct batch *batch);

MUST_CHECK bool batch_grow(struct batch *batch, size_t more);

/* Makes space for `more` arguments after argv_count; false without memory. */
MUST_CHECK static inline bool
batch_reserve(struct batch *batch, size_t more)
{
    return batch->argv_capacity - batch->argv_count >= more ||
           batch_grow(batch, more);
}

/* Returns the canonical RESP around these arguments, of a batch in place. */
struct slice batch_resp(const struct slice *argv, size_t argc);

/* Adds a command: the next `argc` arguments, which the caller has written. */
static inline void
batch_add(struct batch *batch, size_t argc, size_t begin)
{
    batch->command[batch->count++] =
        (struct batch_command){ (uint32_t)batch->argv_count, (uint32_t)argc,
                                begin, false };
    batch->argv_count += argc;
}
