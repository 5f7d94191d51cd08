/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots whose owner has a lower epoch than their holder: the cluster was made
 * anew, or an operator has given the slot to a node of a lower epoch. No daemon
 * gives them to us, until our node's epoch rises or an operator forces them.
 */
#pragma once

#include "cluster/sidecar_state.h"

/* Returns whether a daemon that knows a higher epoch than our node's holds
 * newer data of the slot than we do, and so gives it neither to us nor to our
 * node. */
bool sidecar_is_fallen(const struct sidecar *sidecar, unsigned slot);

/* Whether a daemon has claimed the slot at a higher epoch, perhaps before we
 * started, and no survey has found since that none holds it. Or it comes back
 * from a node with a higher epoch, whose daemon may have done so unheard. */
bool sidecar_may_be_fenced(const struct sidecar *sidecar, unsigned slot);

/* Returns the epoch + 1 above our node's at which the slot is claimed, so that
 * no older holder counts as newer, now or after a restart; 0: our node's will
 * do. */
uint64_t sidecar_raised_of(const struct sidecar *sidecar, unsigned slot);

/* Removes from the slots of a new claim those that are not claimed at the same
 * epoch as the first one. */
void sidecar_separate_raised(struct sidecar *sidecar, struct slot_set *set);

/* Sets which of these wanted slots are missing; the others have a source, or
 * need one. Logs the missing slots whose owner's epoch has fallen. */
void sidecar_set_missing(struct sidecar *sidecar, const struct slot_set *wanted,
                         const struct slot_set *missing);
