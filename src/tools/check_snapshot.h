/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One snapshot, or base, read for what it says about itself and about what it
 * holds.
 */
#pragma once

#include "persist/snapshot_read.h"
#include "tools/check_card.h"

struct check_snapshot {
    enum check_state state;
    struct snapshot_stamp stamp;
    bool has_stamp;
    uint64_t file_bytes;
    struct snapshot_error error; /* the first thing that is wrong */

    /* Of what is intact, if the whole file was read. */
    bool whole;
    uint64_t keys, expiring, items, capacity;
    uint32_t databases;                  /* the highest with a key, and one */
    uint64_t lost_stretches, lost_bytes; /* passed over */
    uint64_t keys_behind; /* intact ones behind the first thing wrong */
};

/* False if it cannot be opened, which is then said. whole: reads everything,
 * past damage too; else the header alone. */
void check_snapshot_look(struct check *check, int fd, bool whole,
                         struct check_snapshot *ret_snapshot);

/* Its card. */
void check_snapshot_show(struct check *check, const char *path,
                         const struct check_snapshot *snapshot);

/* Says on standard error what is wrong; nothing if nothing is. */
void check_snapshot_complain(struct check *check, const char *path,
                             const struct check_snapshot *snapshot);
