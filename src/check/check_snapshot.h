/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads one snapshot or base: its header, and optionally all its filters.
 */
#pragma once

#include "check/check_card.h"
#include "snapshot/snapshot_read.h"

struct check_snapshot {
    enum check_state state;
    struct snapshot_stamp stamp;
    bool has_stamp;
    uint64_t file_bytes;
    struct snapshot_error error; /* the first damage, or a graver error */

    /* Sums over the intact filters, if the whole file was read. */
    bool whole;
    uint64_t keys, expiring, items, capacity;
    uint32_t databases; /* the highest database with a key, plus one */
    uint64_t lost_stretches, lost_bytes; /* damaged stretches, their bytes */
    uint64_t keys_behind; /* intact keys behind the first damage */
    uint64_t effects;     /* groups of effects */
};

/* Reads the header and, if whole, everything, even behind damage. */
void check_snapshot_look(struct check *check, int fd, bool whole,
                         struct check_snapshot *ret_snapshot);

/* Prints the card of a snapshot. */
void check_snapshot_show(struct check *check, const char *path,
                         const struct check_snapshot *snapshot);

/* Prints on standard error what is wrong, if anything is. */
void check_snapshot_complain(struct check *check, const char *path,
                             const struct check_snapshot *snapshot);

/* Moves the progress bar as far as a reader or writer has come. */
struct check_advance {
    struct snapshot_progress progress;
    uint64_t shown_bytes;
};
void check_snapshot_advance(struct check *check, struct check_advance *advance);

/* Returns the state that follows from a result of snapshot_read. */
enum check_state check_snapshot_state(enum snapshot_status status);

/* Returns whether the snapshot was written while clients were served: its
 * filters are copies that only its effects complete (check_world_load). */
bool check_snapshot_is_walked(const struct check_snapshot *snapshot);

/* Does nothing. It is the passed_over function of a snapshot_visitor that reads
 * on behind damage. */
void check_snapshot_leave_out(void *ctx, const struct snapshot_error *error,
                              uint64_t from, uint64_t to);
