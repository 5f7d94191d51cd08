/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asks all daemons what they hold (struct sidecar_survey).
 */
#pragma once

#include "cluster/sidecar_state.h"

void survey_init(struct sidecar *sidecar);
void survey_fini(struct sidecar *sidecar);

/* survey_tick() begins a round if it is due. survey_hurry() makes the next one
 * due soon. */
void survey_tick(struct sidecar *sidecar, uint64_t now_ms);
void survey_hurry(struct sidecar *sidecar);

/* Returns whether no slot is on its way to us or away from us. Then it does not
 * matter how long the logs of copies are, which only whole answers report. */
bool survey_is_calm(const struct sidecar *sidecar);

/* Returns whether no daemon in the last round has newer data of the slot than
 * this server. */
bool survey_has_none_newer(const struct sidecar *sidecar, unsigned slot);

/* Returns whether a round has ended after `round`, and the last one is not too
 * old (SURVEY_LATE_MS), since this server may have stood still. If not, makes
 * the next round due soon. */
bool survey_is_fresh(struct sidecar *sidecar, uint64_t round, uint64_t now_ms);

/* Returns whether, in a round that ended after `round`, all daemons have
 * answered, and none of them claims one of the slots. If not, makes the next
 * round due soon. */
bool survey_is_clear(struct sidecar *sidecar, uint64_t round,
                     const struct slot_set *set);

/* Returns whether a daemon that was silent when a survey chose the claim's
 * source has answered since, and has newer data. */
bool survey_outdoes_source(const struct sidecar *sidecar);

/* Reduces the slots of a new claim, which have one source. It keeps those that
 * a survey has found there; if there are none, those that the source has served
 * until now. Of these it keeps the ones with an equal `known`. */
void survey_separate(struct sidecar *sidecar, struct slot_set *set);

/* Returns whether this answered a question of the survey. */
bool survey_answered(struct sidecar *sidecar, uint64_t number,
                     const struct sidecar_answer *answer);
