/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes what an operator says about slots whose data is lost:
 * sidecar_force_serve (sidecar.h).
 */
#pragma once

#include "cluster/sidecar_state.h"

struct candidate;

/* Implement sidecar_may_force and sidecar_force_serve (sidecar.h). */
bool sidecar_force_check(const struct sidecar *sidecar,
                         const struct slot_set *set, bool leased,
                         char *ret_reason, size_t size);
bool sidecar_force(struct sidecar *sidecar, const struct slot_set *set,
                   const char *from, struct candidate *candidates,
                   char *ret_reason, size_t size);

/* Returns whether a missing slot is to be served with the data that can be
 * found. An operator's order to fetch data that a survey had found does not
 * count once that data has disappeared. */
bool sidecar_is_forced(const struct sidecar *sidecar, unsigned slot);

/* Returns whether an operator has chosen the data for the slot, and whose: ours
 * (*ret_ours) or a peer's (*ret_from). False if the newest data has come back.
 */
bool sidecar_force_chooses(const struct sidecar *sidecar, unsigned slot,
                           bool *ret_ours, uint16_t *ret_from);

/* Handles that the chosen data could not be taken over: the slots are missing
 * until the operator decides again. */
void sidecar_force_failed(struct sidecar *sidecar, const struct slot_set *set);
