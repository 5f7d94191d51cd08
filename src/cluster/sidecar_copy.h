/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A replica holds what its leader holds: it asks from time to time, and takes
 * the answer over when its copy has reached that place of the leader's log.
 */
#pragma once

#include "cluster/sidecar_hooks.h"

struct sidecar;

/* Forgets what was answered, for another leader. */
void sidecar_copy_reset(struct sidecar *sidecar);

/* Asks if it is time, and compares the last answer with our place. */
void sidecar_copy_tick(struct sidecar *sidecar, uint64_t now_ms);

/* If the data of another leader has replaced the copy, nothing is held here
 * until that leader has said what it holds. */
void sidecar_copy_check(struct sidecar *sidecar);

/* Returns whether this answered the question. */
bool sidecar_copy_answered(struct sidecar *sidecar, uint64_t number,
                           const struct sidecar_answer *answer);
