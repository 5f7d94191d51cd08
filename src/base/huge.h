/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Zeroed mappings for large arrays, aligned to 2 MiB and advised for huge
 * pages, which halves the time of a lookup that misses the caches. They cost
 * nothing until they are touched. Needs the C library alone, so that
 * libbloomery can carry it. Any thread.
 */
#pragma once

#include <stddef.h>

enum { HUGE_PAGE_BYTES = 2 * 1024 * 1024 };

/* What a mapping of `bytes` takes: whole huge pages. */
size_t huge_round(size_t bytes);

/* NULL if the address space is short, or bytes is absurd. */
void *huge_map(size_t bytes);

/* Gives it back in pieces of 32 MiB, so that page faults of other threads do
 * not wait for all of it. */
void huge_unmap(void *ptr, size_t bytes);
