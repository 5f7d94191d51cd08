/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active defragmentation: while the allocator's pages hold much more than what
 * is in use, loop 0 moves filters together, in slices between its other work.
 * How much is much, and how much of its time it takes, are the options of
 * Valkey.
 */
#pragma once

#include "engine/service.h"

/* What one server knows of it. Loop 0. */
struct defrag {
    unsigned percent;        /* of loop 0's time; 0: it does not run */
    uint64_t looked_ns;      /* at the allocator's figures */
    uint64_t rests_until_ns; /* the last turn moved hardly anything */
    uint64_t moved, stayed;  /* keys, in this turn over the keyspace */
};

/* Works for a slice if that is worth it. Returns after how many milliseconds it
 * wants to be called again. Outside the gate; loop 0, with its worker. */
uint64_t defrag_run(struct defrag *defrag, struct worker *worker);

/* Returns the percent that waste of so many bytes is worth: 0, or from
 * active-defrag-cycle-min at the lower threshold to -max at the upper one. */
unsigned defrag_effort(const struct conf *conf, uint64_t used_bytes,
                       uint64_t wasted_bytes);
