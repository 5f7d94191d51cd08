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

/* Returns whether no slot is on its way to us or away from us. Then the lengths
 * of copies' logs, which only complete answers report, do not matter. */
bool survey_is_calm(const struct sidecar *sidecar);

/* Returns whether a daemon in the last round holds the slot at the highest
 * epoch that this server knows of. */
bool survey_finds_newest(const struct sidecar *sidecar, unsigned slot);

/* Returns whether no daemon in the last round has newer data of the slot than
 * this server. */
bool survey_has_none_newer(const struct sidecar *sidecar, unsigned slot);

/* Returns whether a round has ended after `round`, and the last round is not
 * too old (SURVEY_LATE_MS), as it is after this server stood still. If false,
 * makes the next round due soon. */
bool survey_is_fresh(struct sidecar *sidecar, uint64_t round, uint64_t now_ms);

/* Returns whether a round has ended after `round`, and in the last one all
 * daemons answered and none of them claims one of the slots. If false, makes
 * the next round due soon. */
bool survey_is_clear(struct sidecar *sidecar, uint64_t round,
                     const struct slot_set *set);

/* Returns whether a daemon that was silent when a survey chose the claim's
 * source has answered since, and has newer data. */
bool survey_outdoes_source(const struct sidecar *sidecar);

/* Reduces the slots of a new claim, which all have the same source, to those
 * that one question can ask for. It keeps the slots for which a survey has
 * found the source; if there are none, it keeps all. Of these it keeps the
 * slots that are like the first one in `known`, and in whether an operator has
 * chosen the source. */
void survey_separate(struct sidecar *sidecar, struct slot_set *set);

/* Handles an answer to a question of the survey. False: it answers another
 * question. */
bool survey_answered(struct sidecar *sidecar, uint64_t number,
                     const struct sidecar_answer *answer);
