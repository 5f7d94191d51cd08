/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prefetches the cache line at an address, which may be any. The builtin alone
 * does not count as an effect for GCC: it removes calls to a function that does
 * nothing else, and the prefetch with them.
 */
#pragma once

static inline void
prefetch(const void *at)
{
    __builtin_prefetch(at);
    __asm__ volatile("");
}
