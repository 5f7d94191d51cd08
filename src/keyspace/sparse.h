/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which mappings of large layers use huge pages. With huge pages, each item of
 * a large filter with few items would take 2 MiB. So a layer begins with small
 * pages. While the process gets new pages, a thread counts the pages in use, in
 * a part of all mappings at a time. When a quarter is in use, the mapping is
 * advised for huge pages, and the thread collapses it, 2 MiB at a time, where
 * the kernel can (Linux 6.1); elsewhere the kernel does it by itself in time.
 *
 * Without the thread, as in the tools, and where the kernel does not say which
 * pages are in use, nothing changes: mappings have huge pages from the start.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Start and stop the thread: before all other threads begin, and after they
 * have ended. */
void sparse_start(void);
void sparse_stop(void);

/* Watches a new mapping of huge_map(), which begins with small pages, until
 * sparse_forget(). Any thread. */
void sparse_watch(void *ptr, size_t bytes);

/* Ends the watch of a mapping that will be unmapped or resized. It may wait
 * until the thread has collapsed the present 2 MiB. Does nothing if the mapping
 * is not watched. */
void sparse_forget(void *ptr);

/* Returns how many mappings are watched, which are those with small pages. */
size_t sparse_count(void);
