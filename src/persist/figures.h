/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Figures for INFO: loop 0 publishes its own with each tick, other threads read
 * them.
 */
#pragma once

#include "persist/persist_info.h"

struct persist;

/* Publishes loop 0's figures, until the next tick. Loop 0. */
void figures_publish(struct persist *persist,
                     const struct journal_status *status);

/* Any thread. */
void persist_get_info(struct persist *persist, struct persist_info *ret_info);
