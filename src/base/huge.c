/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Maps one huge page more than requested, and unmaps the unaligned ends.
 */
#include "base/huge.h"

#include <stdint.h>
#include <sys/mman.h>

enum { UNMAP_STEP = 32 * 1024 * 1024 }; /* about 1 ms with 4 KiB pages */

size_t
huge_round(size_t bytes)
{
    return (bytes + HUGE_PAGE_BYTES - 1) & ~(size_t)(HUGE_PAGE_BYTES - 1);
}

void *
huge_map(size_t bytes)
{
    size_t size = huge_round(bytes);
    size_t head;
    char *base;

    if (bytes > PTRDIFF_MAX - 2 * (size_t)HUGE_PAGE_BYTES) {
        return NULL;
    }
    base = mmap(NULL, size + HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return NULL;
    }
    head = huge_round((uintptr_t)base) - (uintptr_t)base;
    if (head > 0) {
        (void)munmap(base, head);
    }
    (void)munmap(base + head + size, HUGE_PAGE_BYTES - head);
    (void)madvise(base + head, size, MADV_HUGEPAGE); /* a hint */
    return base + head;
}

/* Where the mapping cannot stay, the kernel moves its pages to an aligned place
 * of the new size. One call moves the mapping and changes its size, so that it
 * stays a single one: older kernels do not move several mappings at once. */
void *
huge_resize(void *ptr, size_t before, size_t after)
{
    size_t old = huge_round(before);
    size_t size = huge_round(after);
    void *to;

    if (after > PTRDIFF_MAX - 2 * (size_t)HUGE_PAGE_BYTES) {
        return NULL;
    }
    if (size == old || mremap(ptr, old, size, 0) != MAP_FAILED) {
        return ptr;
    }
    to = huge_map(size);
    if (to == NULL) {
        return NULL;
    }
    if (mremap(ptr, old, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
        MAP_FAILED) {
        huge_unmap(to, size);
        return NULL;
    }
    return to;
}

void
huge_unmap(void *ptr, size_t bytes)
{
    size_t left = huge_round(bytes);
    char *at = ptr;

    while (left > 0) {
        size_t step = left < UNMAP_STEP ? left : UNMAP_STEP;

        (void)munmap(at, step);
        at += step;
        left -= step;
    }
}
