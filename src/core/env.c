/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The default allocator. Lines of 2 MiB and more are mapped at a multiple of
 * 2 MiB and marked for huge pages, which halves the time of a lookup that
 * misses the caches; they are zero without being touched. No state.
 */
#include "core/env.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_BYTES ((size_t)2 << 20)

static void *
alloc_struct(void *ctx, size_t bytes)
{
    (void)ctx;
    return malloc(bytes);
}

static void
free_struct(void *ctx, void *ptr, size_t bytes)
{
    (void)ctx;
    (void)bytes;
    free(ptr);
}

/* What a mapping for BYTES has, in whole huge pages. */
static size_t
mapped_bytes(size_t bytes)
{
    return (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
}

static void *
map_aligned(size_t bytes)
{
    size_t want = mapped_bytes(bytes);
    size_t skip;
    char *raw;

    raw = mmap(NULL, want + HUGE_BYTES, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) {
        return NULL;
    }
    skip = (HUGE_BYTES - (uintptr_t)raw % HUGE_BYTES) % HUGE_BYTES;
    if (skip != 0) {
        (void)munmap(raw, skip);
    }
    (void)munmap(raw + skip + want, HUGE_BYTES - skip);
#ifdef MADV_HUGEPAGE
    (void)madvise(raw + skip, want, MADV_HUGEPAGE); /* only a wish */
#endif
    return raw + skip;
}

static void *
alloc_lines(void *ctx, size_t bytes)
{
    void *lines;

    (void)ctx;
    if (bytes > PTRDIFF_MAX - 2 * HUGE_BYTES) {
        return NULL;
    }
    if (bytes >= HUGE_BYTES) {
        return map_aligned(bytes);
    }
    lines = aligned_alloc(BLOOM_LINE_BYTES, bytes);
    return lines != NULL ? memset(lines, 0, bytes) : NULL;
}

static void
free_lines(void *ctx, void *ptr, size_t bytes)
{
    (void)ctx;
    if (bytes >= HUGE_BYTES && ptr != NULL) {
        (void)munmap(ptr, mapped_bytes(bytes));
    } else {
        free(ptr);
    }
}

const struct bloom_env *
env_or_default(const struct bloom_env *env)
{
    static const struct bloom_env libc_env = { .alloc = alloc_struct,
                                               .free = free_struct,
                                               .alloc_lines = alloc_lines,
                                               .free_lines = free_lines,
                                               .size_limit_bytes = UINT64_MAX };

    return env != NULL ? env : &libc_env;
}
