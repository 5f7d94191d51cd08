/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The arguments of a command that arrives in pieces: their bytes, one after the
 * other, and their lengths. Slices are made only when all arguments have
 * arrived, since the bytes move while they grow. {0} is empty. An arena belongs
 * to one unfinished command at a time.
 */
#pragma once

#include "base/buf.h"

struct arena {
    struct buf bytes;
    size_t *lens;
    size_t count, capacity;
};

void arena_fini(struct arena *arena);

/* Empties the arena, and frees memory above keep_bytes. */
void arena_reset(struct arena *arena, size_t keep_bytes);

/* Copies one more argument. False without memory: only arena_reset or
 * arena_fini may follow. */
MUST_CHECK bool arena_add(struct arena *arena, struct slice argument);

/* Adds an argument: the last `len` bytes, which the caller wrote to `bytes`. */
MUST_CHECK bool arena_close_argument(struct arena *arena, size_t len);

/* Writes `count` slices, valid until the next arena_add or arena_reset. */
void arena_slices(const struct arena *arena, struct slice *ret_argv);

/* Returns the memory that the arena keeps for the command. */
size_t arena_kept_bytes(const struct arena *arena);
