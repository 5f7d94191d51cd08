/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hash of names (keys, not items): XXH3 with a secret seed of this process,
 * so that no client can choose names that share a chain or a stripe.
 */
#pragma once

#include "base/slice.h"

#include <stdint.h>

/* Draws the seed. Call it once, before threads start; without a call the seed
 * is 0. */
void hash_seed_process(void);

uint64_t hash_name(struct slice name);
