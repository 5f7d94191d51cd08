/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Moves the memory of a filter to other addresses. A keyspace does this when
 * many calls of free() have left its blocks scattered. No other thread may use
 * the filter meanwhile.
 */
#pragma once

#include <stddef.h>

#include "base/huge.h"
#include "core/filter.h"
#include "core/line.h"

/* Moves a block: copies its bytes to a new address, frees the old block, and
 * returns the new address. NULL: the block stays where it is. ALIGN divides
 * both addresses. */
typedef void *(*relocate_fn)(void *block, size_t align);

struct relocate_sums {
    uint64_t moved, stayed; /* blocks */
};

/* Lets MOVE move the blocks of the structs, and the lines of COUNT layers, or
 * of all if there are fewer. It begins at layer FROM modulo the number of
 * layers. Adds to *sums. */
void bloom_relocate(struct bloom *bloom, uint32_t from, uint32_t count,
                    relocate_fn move, struct relocate_sums *sums);

/* Moves *BLOCK and stores the new address there, unless it is NULL or stays.
 * Adds to *sums. The block came from malloc(); lines go through
 * relocate_lines(). */
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

/* Does the same for lines of so many bytes. Lines of HUGE_PAGE_BYTES or more
 * are a mapping, about which the allocator knows nothing: MOVE never gets them.
 */
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
