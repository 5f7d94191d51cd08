/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the allocator that is linked says about itself: jemalloc in the server,
 * the C library's elsewhere, which says nothing. Large filters (base/huge.h)
 * are not among its figures. Whatever links this file has a jemalloc that gives
 * unused memory back within seconds, by a thread of its own. Any thread.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct allocator_figures {
    size_t allocated; /* bytes given out */
    size_t active;    /* of the pages that these lie on */
    size_t resident;  /* of all pages that it holds, its own included */
};

/* Figures of this moment; false if the allocator has none. */
bool allocator_get_figures(struct allocator_figures *ret_figures);

/* Appends "jemalloc-5.3.0" or "libc". */
void allocator_append_name(struct buf *text);

/* Gives unused pages back to the kernel. False if the allocator cannot. */
bool allocator_purge(void);

/* Appends the allocator's own report, some kilobytes, at most limit_bytes of
 * it. False if it writes none. */
bool allocator_report(struct buf *text, size_t limit_bytes);
