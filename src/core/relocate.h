/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Moves the memory of a filter to other addresses, for a keyspace that brings
 * together what frees have left far apart. Needs the filter for itself.
 */
#pragma once

#include <stddef.h>

#include "base/huge.h"
#include "core/filter.h"
#include "core/line.h"

/* Returns the new address of a block, whose bytes it copied there, and which it
 * freed; or NULL: the block stays. ALIGN divides both addresses. */
typedef void *(*relocate_fn)(void *block, size_t align);

struct relocate_sums {
    uint64_t moved, stayed; /* blocks */
};

/* Lets MOVE move the blocks of the structs, and those of the lines of COUNT
 * layers, or of all if there are fewer, from layer FROM modulo their number on.
 * Adds to *sums. */
void bloom_relocate(struct bloom *bloom, uint32_t from, uint32_t count,
                    relocate_fn move, struct relocate_sums *sums);

/* Replaces *BLOCK, unless that is NULL or stays. Adds to *sums. The block came
 * from malloc(); lines go through relocate_lines(). */
static inline void
relocate_block(void **block, size_t align, relocate_fn move,
               struct relocate_sums *sums)
{
    void *moved = *block != NULL ? move(*block, align) : NULL;

    if (moved != NULL) {
        *block = moved;
        sums->moved++;
    } else {
        sums->stayed += *block != NULL;
    }
}

/* The same for lines of so many bytes. Those of HUGE_PAGE_BYTES and more are a
 * mapping, about which the allocator knows nothing: MOVE never gets them. */
static inline void
relocate_lines(void **lines, size_t bytes, relocate_fn move,
               struct relocate_sums *sums)
{
    if (bytes >= HUGE_PAGE_BYTES) {
        sums->stayed++;
    } else {
        relocate_block(lines, BLOOM_LINE_BYTES, move, sums);
    }
}
