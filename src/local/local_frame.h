/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The frames of BF.SUBSCRIBE, as pushes of RESP3: bf.message KEY and
 *
 *   is 1 INCARNATION ITEMS LAYERS MS   the answer: the filter, the server's
 * clock is 1 missing                       the answer: there is none add PAIRS
 * [MS]                     items, 16 bytes each, as their bloom_hash; with the
 * time, of an ageing filter deleted N                          items were
 * deleted gone, changed, and all others      the filter is another one
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
    bool missing;         /* of IS, as the next one */
    uint64_t incarnation; /* not 0 */
    uint64_t ms;          /* of IS; of ADD 0, if it has none */
    struct slice pairs;   /* of ADD, borrowed; whole pairs, at least one */
    uint64_t count;       /* of DELETED */
};

/* False: the push is of another kind, or of another key. */
bool local_frame_read(struct slice push, struct slice key,
                      struct local_frame *ret_frame);
