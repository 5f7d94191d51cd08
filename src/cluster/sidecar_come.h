/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots that move one after another wait for the claim of those before them.
 * Their source hears at once that we will come: it goes on serving them to the
 * clients that we send there with ASK, and nobody waits for their turn. It is
 * asked again a few times a second, since it may start again meanwhile.
 */
#pragma once

#include "cluster/sidecar_state.h"

/* Announces what is to be announced. */
void sidecar_come_tick(struct sidecar *sidecar, uint64_t now_ms);

/* The claim's source may have started again: it does not serve what it was
 * asked for before, and hears it once more. */
void sidecar_come_broke(struct sidecar *sidecar);

/* Returns whether this answered such a question. */
bool sidecar_come_answered(struct sidecar *sidecar, uint64_t number,
                           const struct sidecar_answer *answer);
