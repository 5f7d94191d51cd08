/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory of a condemned connection counts as freed already, since its loop
 * may need a moment to close it.
 */
#include "net/usage.h"

#include <stddef.h>

bool
usage_is_above(struct usage *usage)
{
    uint64_t limit = atomic_load_explicit(&usage->limit, memory_order_relaxed);
    uint64_t condemned = atomic_load(&usage->condemned);

    return limit > 0 && atomic_load(&usage->total) > limit + condemned;
}

bool
usage_set(struct usage *usage, struct usage_share *share, uint64_t bytes)
{
    uint64_t before = atomic_load_explicit(&share->bytes, memory_order_relaxed);

    if (bytes == before) {
        return false;
    }
    atomic_store_explicit(&share->bytes, bytes, memory_order_relaxed);
    atomic_fetch_add(&usage->total, bytes - before); /* a fall wraps around */
    return bytes > before && usage_is_above(usage);
}

uint64_t
usage_condemn(struct usage *usage, struct usage_share *share)
{
    uint64_t bytes = atomic_load(&share->bytes);

    share->condemned_bytes = bytes;
    atomic_fetch_add(&usage->condemned, bytes);
    return bytes;
}

void
usage_leave(struct usage *usage, struct usage_share *share)
{
    if (usage != NULL) {
        atomic_fetch_sub(&usage->total, share->bytes);
        atomic_fetch_sub(&usage->condemned, share->condemned_bytes);
    }
    share->bytes = 0;
    share->condemned_bytes = 0;
}
