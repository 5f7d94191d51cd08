/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots that move one after another wait for the claim of those before them.
 * Their source hears at once that we will come: it goes on serving them to the
 * clients that we send there with ASK, and nobody waits for their turn. It is
 * asked again a few times a second, since it may start again meanwhile.
 */
#pragma once

#include "cluster/sidecar_state.h"

/* Tells one source for which of its slots we will come, if any of them have to
 * wait for the claim that is under way. */
void sidecar_come_tick(struct sidecar *sidecar, uint64_t now_ms);

/* The link to the claim's source broke, so that server may have started again,
 * and not know any more that we will come. Commands on the slots that it was
 * to serve wait here, and it is asked once more. */
void sidecar_come_source_broke(struct sidecar *sidecar);

/* Takes an answer to such a question. False: it answers another one. */
bool sidecar_come_answered(struct sidecar *sidecar, uint64_t number,
                           const struct sidecar_answer *answer);
