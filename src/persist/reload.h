/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DEBUG RELOAD. The world stands still meanwhile; nothing is dropped before the
 * snapshot was found intact. Loop 0.
 */
#pragma once

#include <stdbool.h>

struct persist;

bool reload_is_due(const struct persist *persist);

/* Does what was asked for. Blocks. */
void reload_run(struct persist *persist);

/* Fails what was asked for. */
void reload_fail(struct persist *persist);
