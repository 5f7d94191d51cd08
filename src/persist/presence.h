/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether the data directory and the journal are still at their paths. Loop 0.
 */
#pragma once

#include <stdbool.h>

struct journal_status;
struct persist;
struct persist_conf;

/* Looks, a few times a second; called with each tick of persist. */
void presence_tick(struct persist *persist);

/* After _look_anew: returns whether a look that began later has found all files
 * in their places. */
void presence_look_anew(struct persist *persist);
bool presence_is_sure(const struct persist *persist);

/* At a start, before the journal begins: the data directory may have gone while
 * it was loaded. saves: there are rules of save. False: there is no directory
 * that can be used, which was logged. */
bool presence_check_start(struct persist *persist, bool saves);

/* Calls hooks.refilled once a directory that was lost has the data again. */
void presence_look_at_refill(struct persist *persist,
                             const struct persist_conf *conf,
                             const struct journal_status *status);

/* While the directory is lost, nothing else may begin but presence_reopen,
 * which moves the step on, as presence_reopened does. */
bool presence_is_lost(const struct persist *persist);
void presence_reopen(struct persist *persist);
void presence_reopened(struct persist *persist);
