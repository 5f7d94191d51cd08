/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What an operator says about slots whose data is lost: sidecar_force_serve
 * (sidecar.h).
 */
#pragma once

#include "cluster/sidecar_state.h"

struct candidate;

/* As sidecar_may_force and sidecar_force_serve (sidecar.h). */
bool sidecar_force_check(const struct sidecar *sidecar,
                         const struct slot_set *set, bool leased,
                         char *ret_reason, size_t size);
bool sidecar_force(struct sidecar *sidecar, const struct slot_set *set,
                   const char *from, struct candidate *candidates,
                   char *ret_reason, size_t size);

/* Whether a missing slot is to be served with what there is. */
bool sidecar_is_forced(const struct sidecar *sidecar, unsigned slot);

/* Whether an operator has chosen the data of the slot, and which: what is here,
 * or what a peer has. False if the newest data has come back. */
bool sidecar_force_chooses(const struct sidecar *sidecar, unsigned slot,
                           bool *ret_ours, uint16_t *ret_from);

/* The data that was chosen could not be taken over: the slots are missing until
 * the operator says more. */
void sidecar_force_failed(struct sidecar *sidecar, const struct slot_set *set);
