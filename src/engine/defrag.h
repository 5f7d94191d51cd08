/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active defragmentation: while the allocator's pages hold much more than what
 * is in use, loop 0 moves filters together, in slices between its other work.
 * Valkey's options say how much waste there must be, and how much of loop 0's
 * time defragmentation takes.
 */
#pragma once

#include "engine/service.h"

/* The state of defragmentation. Belongs to loop 0. */
struct defrag {
    unsigned percent;        /* of loop 0's time; 0: it does not run */
    uint64_t looked_ns;      /* when it last read the allocator's figures */
    uint64_t rests_until_ns; /* it rests until then, since the last turn moved
                                hardly anything */
    uint64_t moved, stayed;  /* keys moved, and keys that stayed, in this turn
                                over the keyspace */
};

/* Works for a slice of time if that is worth it. Returns in how many
 * milliseconds to call it again. Outside the gate; loop 0, with its worker. */
uint64_t defrag_run(struct defrag *defrag, struct worker *worker);

/* Returns the percent of loop 0's time to spend while wasted_bytes are wasted:
 * 0 below the lower threshold, then from active-defrag-cycle-min up to
 * active-defrag-cycle-max at the upper threshold. */
unsigned defrag_effort(const struct conf *conf, uint64_t used_bytes,
                       uint64_t wasted_bytes);
