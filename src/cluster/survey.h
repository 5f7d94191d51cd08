/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asks all daemons what they hold (struct sidecar_survey).
 */
#pragma once

#include "cluster/sidecar_state.h"

void survey_init(struct sidecar *sidecar);
void survey_fini(struct sidecar *sidecar);

/* Begins a round if it is time; _hurry: soon. */
void survey_tick(struct sidecar *sidecar, uint64_t now_ms);
void survey_hurry(struct sidecar *sidecar);

/* Whether no slot is on its way to us or away. Then it does not matter how long
 * the logs of copies are, which only whole answers tell anew. */
bool survey_is_calm(const struct sidecar *sidecar);

/* Whether no daemon that the last round has found has newer data than we. */
bool survey_has_none_newer(const struct sidecar *sidecar, unsigned slot);

/* Whether a round has ended after this one, and the last one is not older than
 * the next one may be late: we may have stood still since. If not, the next
 * round is soon. */
bool survey_is_fresh(struct sidecar *sidecar, uint64_t round, uint64_t now_ms);

/* Whether a round that ended after this one has heard all daemons, and none of
 * them claims one of the slots. If not, the next round is soon. */
bool survey_is_clear(struct sidecar *sidecar, uint64_t round,
                     const struct slot_set *set);

/* Whether a daemon that was silent when a survey chose the claim's source has
 * answered since, and has newer data. */
bool survey_outdoes_source(const struct sidecar *sidecar);

/* Keeps of a new claim's slots, which have one source, those that a survey has
 * found there, or else those that the source has served until now; and of these
 * the ones with an equal `known`. */
void survey_separate(struct sidecar *sidecar, struct slot_set *set);

/* Returns whether this answered a question of the survey. */
bool survey_answered(struct sidecar *sidecar, uint64_t number,
                     const struct sidecar_answer *answer);
