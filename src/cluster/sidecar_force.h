/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What an operator says about slots whose data is lost: sidecar_force_serve
 * (sidecar.h).
 */
#pragma once

#include "cluster/sidecar_state.h"

/* As sidecar_force_serve (sidecar.h). */
bool sidecar_force(struct sidecar *sidecar, const struct slot_set *set,
                   bool leased, char *ret_reason, size_t size);

/* Whether a missing slot is to be served with what there is. */
bool sidecar_is_forced(const struct sidecar *sidecar, unsigned slot);
