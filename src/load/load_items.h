/* SPDX-License-Identifier: BSD-3-Clause
 *
 * items: adds the items of files to one filter, over several connections.
 */
#pragma once

#include "load/load.h"

/* Adds the items of these files to the filter. Without paths it reads standard
 * input; the path "-" stands for that, too. */
void load_items(struct load *load, const char *key, const char *const *paths,
                size_t count);
