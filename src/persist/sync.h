/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots for replicas. Loop 0.
 */
#pragma once

struct persist;
struct slot_set; /* base/slot_set.h */

/* Requests a snapshot of all keys, or of those of some slots, that is written
 * into a pipe. The log must have a tap.
 * The snapshot begins when no other save or rewrite runs. */
void persist_ask_sync(struct persist *persist, const struct slot_set *slots);

/* Withdraws the request, or breaks off the snapshot if it has begun; then the
 * hook for its end is still called. */
void persist_cancel_sync(struct persist *persist);

/* Begins the requested snapshot: STEP_NONE becomes STEP_SYNC, unless there is
 * no pipe. Calls the hook for the beginning in both cases. */
void sync_begin(struct persist *persist);

/* Calls the hook for the end of the snapshot, if one had begun. */
void sync_ended(struct persist *persist, int error);
