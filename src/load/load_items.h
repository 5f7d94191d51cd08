/* SPDX-License-Identifier: BSD-3-Clause
 *
 * items: adds the items of files to one filter, over several connections.
 */
#pragma once

#include "load/load.h"

/* Without paths, reads standard input; "-" means it too. */
void load_items(struct load *load, const char *key, const char *const *paths,
                size_t count);
