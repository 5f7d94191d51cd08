/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether the data directory and the journal are still at their paths. Loop 0.
 */
#pragma once

#include <stdbool.h>

struct persist;

/* Looks, a few times a second; called with each tick of persist. */
void presence_tick(struct persist *persist);

/* While the directory is lost, nothing else may begin but presence_reopen,
 * which moves the step on, as presence_reopened does. */
bool presence_is_lost(const struct persist *persist);
void presence_reopen(struct persist *persist);
void presence_reopened(struct persist *persist);
