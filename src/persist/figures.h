/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Figures of persistence for INFO. Loop 0 publishes a copy of its figures at
 * each tick, and other threads read the copy.
 */
#pragma once

#include "persist/persist_info.h"

struct persist;

/* Publishes the figures of loop 0. Loop 0 calls it at each tick. */
void figures_publish(struct persist *persist,
                     const struct journal_status *status);

/* Returns the figures for INFO: the published copy, and present values where
 * any thread may read them. Any thread. */
void persist_get_info(struct persist *persist, struct persist_info *ret_info);
