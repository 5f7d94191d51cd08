/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ids that are in a map at one moment, for a walk in pieces while clients
 * come and go. All zero: no walk. Owned by a loop.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"

struct roll {
    struct buf ids;
    size_t done; /* bytes of `ids` that are done */
};

static inline bool
roll_note(void *ctx, struct slice name, void *value)
{
    (void)value;
    buf_append_slice(ctx, name);
    return true;
}

static inline void
roll_end(struct roll *roll)
{
    buf_free(&roll->ids);
    *roll = (struct roll){ 0 };
}

/* Notes the ids, unless a walk is under way. False without memory. */
static inline bool
roll_begin(struct roll *roll, const struct map *map)
{
    if (roll->ids.len == 0) {
        (void)map_each(map, roll_note, &roll->ids);
    }
    return !roll->ids.failed;
}

/* Takes the next id. False: that was the last one, and the walk has ended. */
static inline bool
roll_next(struct roll *roll, struct slice *ret_id)
{
    if (roll->done == roll->ids.len) {
        roll_end(roll);
        return false;
    }
    *ret_id = (struct slice){ roll->ids.data + roll->done, sizeof(uint64_t) };
    roll->done += sizeof(uint64_t);
    return true;
}
