/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A pool of a few megabytes that is mapped and touched at the start, and serves
 * blocks once the allocator has nothing left (base/mem.h says to whom). Only
 * mem.c takes blocks. A program that never opens it has none. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RESERVE_BYTES = 4 * 1024 * 1024,
    RESERVE_UNIT_BYTES = 256 /* of blocks; they are aligned to it */
};

extern char *reserve_base; /* NULL: not open. Constant after the start. */

/* False if there is no memory for it. Call it before other threads start. */
bool reserve_open(void);

/* For tests: every block was given back. */
void reserve_close(void);

/* A block that leaves at least leave_bytes of the pool free; NULL if there is
 * none. */
void *reserve_take(size_t bytes, size_t leave_bytes);
void reserve_give(void *block);

/* What the block has room for. */
size_t reserve_block_bytes(const void *block);

/* Bytes of the pool that are in use, the most that ever were, and those that
 * are free (0 if it is not open). */
size_t reserve_used(void);
size_t reserve_peak(void);
size_t reserve_free(void);

/* How often somebody asked for a block, and so found no other memory. */
uint64_t reserve_asked(void);

static inline bool
reserve_owns(const void *ptr)
{
    return reserve_base != NULL &&
           (uintptr_t)ptr - (uintptr_t)reserve_base < RESERVE_BYTES;
}
