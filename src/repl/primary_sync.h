/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Full synchronizations: one snapshot serves all replicas that wait for the
 * same one, of all keys or of the same slots. The others wait for the next
 * snapshot. The owner (primary_hooks.h) makes the snapshot. It reports its
 * beginning, its bytes and its end. Loop 0.
 */
#pragma once

#include "repl/primary_hooks.h"

struct primary;

/* Asks the owner for a snapshot when the first waiting replica has waited for
 * sync_delay_ms. If a peer waits to take over slots, asks at once, since no
 * other one will need the same snapshot. */
void primary_sync_ask(struct primary *primary, uint64_t now_ms);

/* Facts about the snapshot that the owner was asked for. */
struct primary_sync {
    uint64_t position, sequence;
    uint64_t bytes; /* an estimate */
    /* The history that the snapshot's header names; "": the present one. */
    char history[HISTORY_ID_CHARS + 1];
};
void primary_sync_began(struct primary *primary,
                        const struct primary_sync *sync, uint64_t now_ms);
/* Says that the snapshot is the state at this position, where the log for its
 * replicas begins. It is not lower than the position in primary_sync_began. */
void primary_sync_reached(struct primary *primary, uint64_t position);
void primary_sync_bytes(struct primary *primary, struct slice bytes,
                        uint64_t now_ms);
/* Ends the snapshot. good: the owner has passed on all its bytes, and reported
 * its position (primary_sync_reached). Otherwise this drops the replicas that
 * receive it, or that still wait for its beginning. */
void primary_sync_ended(struct primary *primary, bool good, uint64_t now_ms);
