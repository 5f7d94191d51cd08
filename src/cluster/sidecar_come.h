/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots that move one after another wait until the slots before them are
 * claimed. We tell their source at once that we will come for them: then the
 * source goes on serving them to clients that we redirect with ASK, and no
 * client has to wait. We tell the source again a few times a second, since it
 * may have restarted.
 */
#pragma once

#include "cluster/sidecar_state.h"

/* Tells one source for which of its slots we will come, if some of them have to
 * wait for the present claim. */
void sidecar_come_tick(struct sidecar *sidecar, uint64_t now_ms);

/* Handles that the link to the claim's source broke: the source may have
 * restarted and no longer know that we will come. Commands on the slots that it
 * was to serve wait here until it is told again. */
void sidecar_come_source_broke(struct sidecar *sidecar);

/* Handles an answer to a question of sidecar_come_tick(). False: it answers
 * another question. */
bool sidecar_come_answered(struct sidecar *sidecar, uint64_t number,
                           const struct sidecar_answer *answer);
