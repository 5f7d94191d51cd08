/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The figures of the linked allocator. The server has jemalloc; other programs
 * have the C library's, which gives no figures. Large filters (base/huge.h) are
 * not included. In a program that links this file and jemalloc, a background
 * thread of jemalloc returns unused memory within seconds. Any thread.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct allocator_figures {
    size_t allocated; /* bytes in use */
    size_t active;    /* bytes of the pages that contain them */
    size_t resident;  /* bytes of all pages of the allocator in memory */
};

/* Reads the present figures; false if the allocator has none. */
bool allocator_get_figures(struct allocator_figures *ret_figures);

/* Appends "jemalloc-5.3.0" or "libc". */
void allocator_append_name(struct buf *text);

/* Returns unused pages to the kernel. False if the allocator cannot. */
bool allocator_purge(void);

/* Empties the calling thread's cache of free blocks, each of which keeps the
 * pages around it in use. Call it in a thread that has freed very much. */
void allocator_empty_cache(void);

/* Moves a block if the page that has it is used less than others with blocks of
 * its size, so that this page becomes free in the end. Only the calling thread
 * uses the block, which comes from mem_alloc(), or from mem_lines() if it has
 * less than HUGE_PAGE_BYTES. Returns the new address, a multiple of ALIGN as
 * the old one was; NULL if the block stays where it is, as blocks of the
 * reserve always do. */
void *allocator_move(void *block, size_t align);

/* Appends the allocator's own report, some kilobytes, at most limit_bytes of
 * it. False if it has none. */
bool allocator_report(struct buf *text, size_t limit_bytes);
