/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DEBUG RELOAD. The gate is raised during it, and no data is dropped before the
 * snapshot was found to be intact. Loop 0.
 */
#pragma once

#include <stdbool.h>

struct persist;

bool reload_is_due(const struct persist *persist);

/* Does the requested reloads: those with NOSAVE, or if there are none, the
 * others. Blocks. */
void reload_run(struct persist *persist);

/* Lets the requested reloads fail. */
void reload_fail(struct persist *persist);
