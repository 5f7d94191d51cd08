/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A pool of a few megabytes that is mapped and touched at the start. It
 * provides blocks when the allocator has no memory left, only through mem.c
 * (base/mem.h has the rules). A program that does not call reserve_open() has
 * no reserve. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RESERVE_BYTES = 4 * 1024 * 1024,
    RESERVE_UNIT_BYTES = 256 /* the size and alignment of blocks */
};

extern char *reserve_base; /* NULL: not open. Constant after the start. */

/* Maps the pool, before other threads start. False without memory. */
bool reserve_open(void);

/* Returns a block if at least leave_bytes of the pool stay free; else NULL. */
void *reserve_take(size_t bytes, size_t leave_bytes);
void reserve_give(void *block);

/* Returns the usable bytes of a block of the pool. */
size_t reserve_block_bytes(const void *block);

/* Return the bytes of the pool in use, the most that were in use so far, and
 * the free bytes (0 if it is not open). */
size_t reserve_used(void);
size_t reserve_peak(void);
size_t reserve_free(void);

/* Returns how often a block was asked for because the allocator had no memory.
 */
uint64_t reserve_asked(void);

static inline bool
reserve_owns(const void *ptr)
{
    return reserve_base != NULL &&
           (uintptr_t)ptr - (uintptr_t)reserve_base < RESERVE_BYTES;
}
