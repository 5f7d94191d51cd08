/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots for replicas. Loop 0.
 */
#pragma once

#include <stdbool.h>

struct persist;
struct slot_set; /* base/slot_set.h */

/* Requests a snapshot of all keys, or of those of some slots, that is written
 * into a pipe. The log must have a tap.
 * The snapshot goes on beside saves and rewrites. It waits for the end of one
 * before it, of a fault of the journal, and for data from another server to be
 * on the disk. */
void persist_ask_sync(struct persist *persist, const struct slot_set *slots);

/* Withdraws the request, or breaks off the snapshot if it has begun; then the
 * hook for its end is still called. */
void persist_cancel_sync(struct persist *persist);

/* Begins the requested snapshot, unless there is no pipe. Calls the hook for
 * the beginning in both cases. Only if none is running: one that has ended is
 * reaped first. */
void sync_begin(struct persist *persist);
bool sync_is_running(const struct persist *persist);
void sync_reap(struct persist *persist);

/* Ends the walk of the snapshot, if it is through. Outside the gate. */
void sync_end_walk(struct persist *persist);

/* Breaks the snapshot off, if one is running, and calls the hook for its end.
 */
void sync_break_off(struct persist *persist);
