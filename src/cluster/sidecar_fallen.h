/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots whose owner has a lower epoch than their holder: the cluster was made
 * anew, or an operator has given the slot to a node of a lower epoch. No daemon
 * gives us these slots until our node's epoch rises or an operator forces them.
 */
#pragma once

#include "cluster/sidecar_state.h"

/* Returns whether the slot's data must be fetched but its holder refuses: the
 * slot is held, or is known to have been held, at a higher epoch than our
 * node's. */
bool sidecar_is_fallen(const struct sidecar *sidecar, unsigned slot);

/* Returns whether another daemon may have claimed the slot at a higher epoch
 * than we hold it. Either we know of such a claim, and no survey has found
 * since that no daemon holds the slot. Or the last owner's node has a higher
 * epoch, and its daemon may have claimed the slot without our knowledge. */
bool sidecar_may_be_fenced(const struct sidecar *sidecar, unsigned slot);

/* Returns the epoch + 1 at which the slot must be claimed if our node's is too
 * low: otherwise an older holder would count as newer, now or after a restart.
 * 0: our node's epoch is high enough. */
uint64_t sidecar_raised_of(const struct sidecar *sidecar, unsigned slot);

/* Removes from the slots of a new claim those that are not claimed at the same
 * epoch as the first one. */
void sidecar_separate_raised(struct sidecar *sidecar, struct slot_set *set);

/* Sets which of these wanted slots are missing; the others enter FOUND or
 * WANTED. Logs the missing slots whose owner's epoch has fallen. */
void sidecar_set_missing(struct sidecar *sidecar, const struct slot_set *wanted,
                         const struct slot_set *missing);
