/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Restores huge pages that a save broke up. Loop 0.
 */
#pragma once

struct persist;

/* Asks for it: the writing of a full state has ended. */
void collapse_want(struct persist *persist);

/* Does some of it; called with each tick while no step is under way. */
void collapse_tick(struct persist *persist);
