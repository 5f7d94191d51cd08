/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Both parts double as arguments arrive, and never because of a declared count
 * or length. The bytes are contiguous, so the lengths suffice.
 */
#include "proto/arena.h"

#include "base/mem.h"

enum { LENS_FIRST = 16 };

void
arena_fini(struct arena *arena)
{
    buf_free(&arena->bytes);
    mem_free(arena->lens);
    *arena = (struct arena){ 0 };
}

void
arena_reset(struct arena *arena, size_t keep_bytes)
{
    buf_reset(&arena->bytes, keep_bytes);
    arena->count = 0;
    if (arena->capacity * sizeof(*arena->lens) > keep_bytes) {
        mem_free(arena->lens);
        arena->lens = NULL;
        arena->capacity = 0;
    }
}

bool
arena_close_argument(struct arena *arena, size_t len)
{
    if (arena->count == arena->capacity) {
        size_t capacity =
            arena->capacity > 0 ? 2 * arena->capacity : LENS_FIRST;
        size_t *lens = mem_try_realloc(arena->lens, capacity * sizeof(*lens));

        if (lens == NULL) {
            return false;
        }
        arena->lens = lens;
        arena->capacity = capacity;
    }
    arena->lens[arena->count++] = len;
    return true;
}

bool
arena_add(struct arena *arena, struct slice argument)
{
    if (argument.len > 0) {
        buf_append_slice(&arena->bytes, argument);
    }
    return !arena->bytes.failed && arena_close_argument(arena, argument.len);
}

void
arena_slices(const struct arena *arena, struct slice *ret_argv)
{
    /* Without bytes all arguments are empty; their slices need an address. */
    const char *at = arena->bytes.data != NULL ? arena->bytes.data : "";

    for (size_t i = 0; i < arena->count; i++) {
        ret_argv[i] = (struct slice){ at, arena->lens[i] };
        at += arena->lens[i];
    }
}

size_t
arena_kept_bytes(const struct arena *arena)
{
    return arena->bytes.len + arena->count * sizeof(*arena->lens);
}
