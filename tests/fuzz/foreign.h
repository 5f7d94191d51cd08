/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the fuzz targets of foreign forms share: an allocator that counts, and
 * filters to begin with.
 */
#pragma once

#include <bloomery/bloom.h>

#include "target.h"

struct foreign_heap {
    size_t out; /* bytes not yet freed */
};

/* Returns an allocator with a limit of 256 KiB a filter. */
struct bloom_env foreign_env(struct foreign_heap *heap);

/* Asks for items and adds them, until the filter refuses, then others at times
 * that rise; checks its answers. */
void foreign_use(struct bloom *bloom, const struct bloom_env *env);

/* Sets the kind, and what filters of it need besides. */
void foreign_set_kind(struct bloom_params *params, enum bloom_kind kind);

/* Makes a filter of random properties and items; NULL if they are too many. */
struct bloom *foreign_random(uint64_t *random, const struct bloom_env *env,
                             enum bloom_kind kind);

/* Changes up to three bytes or bits, mostly in the first 256 bytes. */
void foreign_damage(uint64_t *random, uint8_t *data, size_t size);
