/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The default allocator of filters: the C library, and whole huge pages for
 * large layers. No state, any thread.
 */
#pragma once

#include <bloomery/bloom.h>

/* Returns ENV, or if it is NULL the default allocator without a limit. */
const struct bloom_env *env_or_default(const struct bloom_env *env);
