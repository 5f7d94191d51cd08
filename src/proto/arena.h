/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The arguments of one command that does not lie in one piece: their bytes,
 * one behind the other, and their lengths. Pointers are made only when all
 * have arrived, so that the bytes may move while they grow. {0} is an empty
 * one; it belongs to one unfinished command at a time.
 */
#pragma once

#include "base/buf.h"

struct arena {
    struct buf bytes;
    size_t *lens;
    size_t count, capacity;
};

void arena_fini(struct arena *arena);

/* Empties it; gives memory above keep_bytes back. */
void arena_reset(struct arena *arena, size_t keep_bytes);

/* Copies one more argument. False if memory is short: only arena_reset or
 * arena_fini may follow. */
MUST_CHECK bool arena_add(struct arena *arena, struct slice argument);

/* The last `len` bytes written to `bytes` by the caller are an argument. */
MUST_CHECK bool arena_close_argument(struct arena *arena, size_t len);

/* Writes `count` slices; they end with the next arena_add or arena_reset. */
void arena_slices(const struct arena *arena, struct slice *ret_argv);

/* Bytes held for the command. */
size_t arena_kept_bytes(const struct arena *arena);
