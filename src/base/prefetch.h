/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prefetches the cache line at an address, which need not be valid. The empty
 * asm keeps the prefetch: GCC does not count the builtin as an effect, and
 * would remove calls to a function that does nothing else.
 */
#pragma once

static inline void
prefetch(const void *at)
{
    __builtin_prefetch(at);
    __asm__ volatile("");
}
