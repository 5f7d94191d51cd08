/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots for replicas. Loop 0.
 */
#pragma once

#include <stdbool.h>

struct persist;
struct slot_set; /* base/slot_set.h */

/* Requests a snapshot of all keys, or of those of some slots, that is written
 * into a pipe. The log must have a tap. The snapshot goes on at the same time
 * as saves and rewrites. It begins after an earlier such snapshot has ended,
 * after a fault of the journal has ended (a snapshot of slots need not wait for
 * that), and after data from another server is on the disk. */
void persist_ask_sync(struct persist *persist, const struct slot_set *slots);

/* Withdraws the request, or breaks off the snapshot if it has begun; then the
 * hook `ended` is still called. */
void persist_cancel_sync(struct persist *persist);

/* Begins the requested snapshot, unless no pipe can be made. Calls the hook
 * `began` in both cases. Call it only if no such snapshot is running; call
 * sync_reap() first for one that has ended. */
void sync_begin(struct persist *persist);
bool sync_is_running(const struct persist *persist);
void sync_reap(struct persist *persist);

/* Ends the walk of the snapshot, if it has visited everything. Outside the
 * gate. */
void sync_end_walk(struct persist *persist);

/* Breaks off the snapshot, if one is running, and calls the hook `ended`. */
void sync_break_off(struct persist *persist);
