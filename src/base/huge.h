/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Zeroed mappings for large arrays, aligned to 2 MiB and advised for huge
 * pages, which halves the time of a lookup that misses the caches. They take
 * no memory until they are touched. Needs only the C library, since it is a
 * part of libbloomery. Any thread.
 */
#pragma once

#include <stddef.h>

enum { HUGE_PAGE_BYTES = 2 * 1024 * 1024 };

/* Rounds up to whole huge pages, which is the size of a mapping. */
size_t huge_round(size_t bytes);

/* Maps the bytes. NULL if there is no address space. */
void *huge_map(size_t bytes);

/* Makes a mapping longer or shorter without copying it, and returns where it is
 * then. NULL if there is no address space: the mapping stays as it was. */
void *huge_resize(void *ptr, size_t before, size_t after);

/* Unmaps in pieces of 32 MiB, so that page faults of other threads do not wait
 * for the whole call. */
void huge_unmap(void *ptr, size_t bytes);
