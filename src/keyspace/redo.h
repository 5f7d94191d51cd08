/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes what the log says of a deletable filter. A replay does so on the
 * filter itself, a loader on its copy (keyspace/arrival.h). The words are
 * PLACED, and then for each item its place and the item:
 *
 *   +    added as a new one
 *   n    its bits were marked again in layer n
 *   n:c  its deletion cleared c bits in layer n
 *
 * Nothing is looked up again, since the lines of a copy may be newer than its
 * counts (core/deletable.h).
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"
#include "core/deletable.h"

enum { REDO_PLACE_MAX = 32 /* bytes; a place has 11 at most */ };

/* The words of an effect that follow PLACED. position: where the effect ends in
 * the log; it matters only for copies. */
struct redo {
    const struct slice *words;
    size_t count; /* number of words; if it is odd, the effect is wrong */
    uint64_t position;
    /* Whether earlier effects are lost, so that the places may not fit this
     * filter. Then adds find places anew, and nothing is deleted, since that
     * could clear bits of other items. */
    bool anew;
};

/* Write a place. Return its length. */
size_t redo_put_add(uint16_t layer, char ret_place[REDO_PLACE_MAX]);
size_t redo_put_deletion(struct deletable_done done,
                         char ret_place[REDO_PLACE_MAX]);

/* Add or delete the items, and keep the metrics. BLOOM_INVALID: the filter
 * cannot have done that, or is not deletable. */
MUST_CHECK enum bloom_status redo_adds(struct bloom *bloom,
                                       const struct bloom_env *env,
                                       const struct redo *redo);
MUST_CHECK enum bloom_status redo_deletions(struct bloom *bloom,
                                            const struct redo *redo);
