/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines of 2 MiB and more are mappings of their own.
 */
#include "core/env.h"

#include "base/huge.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

static void *
alloc_lines(void *ctx, size_t bytes)
{
    void *lines;

    (void)ctx;
    if (bytes >= HUGE_PAGE_BYTES) {
        return huge_map(bytes);
    }
    lines = aligned_alloc(BLOOM_LINE_BYTES, bytes);
    return lines != NULL ? memset(lines, 0, bytes) : NULL;
}

static void
free_lines(void *ctx, void *ptr, size_t bytes)
{
    (void)ctx;
    if (bytes >= HUGE_PAGE_BYTES && ptr != NULL) {
        huge_unmap(ptr, bytes);
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
