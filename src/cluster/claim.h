/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Gains the slots that our node owns and that are not served, from one source
 * at a time (struct claim).
 */
#pragma once

#include "cluster/sidecar_state.h"

/* Begins the next claim, or continues the present one. */
void claim_tick(struct sidecar *sidecar, uint64_t now_ms);

/* Handle the answer to the claim's question, and the events of its pull. */
void claim_answered(struct sidecar *sidecar,
                    const struct sidecar_answer *answer, uint64_t now_ms);
void claim_is_near(struct sidecar *sidecar, uint64_t now_ms);
void claim_pull_broke(struct sidecar *sidecar);
void claim_pull_ended(struct sidecar *sidecar, bool good, const char *reason,
                      uint64_t now_ms);

/* Takes over the slots of which we hold a copy, since our node was promoted. */
void claim_begin_hand_off(struct sidecar *sidecar, uint64_t now_ms);

/* Returns whether such a hand-off is under way. */
bool claim_is_hand_off(const struct sidecar *sidecar);

/* Notes that our node no longer owns the slots `lost`. claimed: the slots that
 * the claim had before. */
void claim_drop(struct sidecar *sidecar, const struct slot_set *claimed,
                const struct slot_set *lost);
void claim_cancel(struct sidecar *sidecar);

/* Checks whether our node's epoch has risen while the claim waits for the disk
 * (KEEPS). gained: our node has new slots, which explains the rise. */
void claim_follow_epoch(struct sidecar *sidecar, bool gained);
