/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where a filter's memory comes from when its user names no allocator: the C
 * library, and whole huge pages for large layers. No state, any thread.
 */
#pragma once

#include <bloomery/bloom.h>

/* ENV itself, or if it is NULL the C library's allocator with no limit. */
const struct bloom_env *env_or_default(const struct bloom_env *env);
