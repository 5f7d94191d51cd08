/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sets the pace of the snapshot that is being sent, by the fastest replica that
 * receives it. Cancels the snapshot when no replica needs it any more. Loop 0.
 */
#pragma once

struct primary;

/* Pauses or resumes the snapshot. Call it when output was added or taken. */
void primary_pace_update(struct primary *primary);

/* Cancels the snapshot if no replica is left that needs it, and updates the
 * pace. Call it when a replica was removed. */
void primary_pace_review(struct primary *primary);
