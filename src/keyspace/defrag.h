/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Moves entries, filters and tables to places that the allocator prefers, so
 * that pages on which frees have left a few blocks become free. A stripe is
 * locked for about eight entries at a time. One thread at a time, inside a
 * gate section.
 */
#pragma once

#include "core/relocate.h"
#include "keyspace/keyspace.h"

struct defrag_sums {
    struct relocate_sums all;     /* all blocks */
    struct relocate_sums filters; /* blocks of filters: their structs and
                                     lines */
    struct relocate_sums keys;    /* counts keys instead: moved if any of their
                                     blocks was moved */
};

/* Works for about budget_us, at least one step, from where it ended the last
 * time. Adds to *sums. Returns true at the end of a turn over all stripes. */
bool keyspace_defrag(struct keyspace *ks, unsigned thread, relocate_fn move,
                     uint64_t budget_us, struct defrag_sums *sums);
