/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The frames of BF.SUBSCRIBE, as pushes of RESP3: bf.message KEY and
 *
 *   is 1 INCARNATION ITEMS LAYERS MS  the answer: the filter, and the time of
 *                                     the server, in ms since 1970
 *   is 1 missing                      the answer: there is no filter
 *   add PAIRS [MS]                    items, a bloom_hash of 16 bytes each;
 *                                     with their time, if the filter ages
 *   deleted N                         so many items were deleted
 *   gone, changed, and all others     the filter is another one
 *
 * The bytes may be hostile, but are one whole push. Pure functions.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { LOCAL_PAIR_BYTES = 16 };

enum local_frame_kind {
    LOCAL_FRAME_IS,
    LOCAL_FRAME_ADD,
    LOCAL_FRAME_DELETED,
    LOCAL_FRAME_CHANGED
};

struct local_frame {
    enum local_frame_kind kind;
    bool missing;         /* for IS: the key is missing */
    uint64_t incarnation; /* for IS: not 0, unless `missing` */
    uint64_t ms;          /* for IS and ADD: the time; 0: an ADD without a
                             time */
    struct slice pairs;   /* for ADD: at least one whole pair, borrowed */
    uint64_t count;       /* for DELETED: how many items */
};

/* Reads a push about this key. False: it is of another kind, or about another
 * key. */
bool local_frame_read(struct slice push, struct slice key,
                      struct local_frame *ret_frame);
