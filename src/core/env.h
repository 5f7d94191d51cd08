/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The default allocator of filters: the C library, and for large layers
 * mappings of whole huge pages. It has no state. Any thread.
 */
#pragma once

#include <bloomery/bloom.h>

/* Returns ENV, or, if that is NULL, the default allocator without a limit. */
const struct bloom_env *env_or_default(const struct bloom_env *env);
