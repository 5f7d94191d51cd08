/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The arithmetic of hash tables that grow and shrink by one bucket at a time
 * (linear hashing, Litwin 1980). A table has `used` buckets, at least two.
 * Buckets that were split use one bit of the hash more than the others. A table
 * grows by bucket `used`, which is split off its parent, and shrinks by its
 * last bucket, which is merged into its parent.
 */
#pragma once

#include <stdint.h>

/* Returns the bits of this hash that select its bucket: 2^n - 1. */
static inline uint64_t
linear_mask(uint64_t used, uint64_t hash)
{
    uint64_t mask = UINT64_MAX >> __builtin_clzll(used - 1);
    uint64_t half = mask >> 1;

    /* The bucket to which the next split moves this hash may exist already. */
    return ((hash & half) | (half + 1)) < used ? mask : half;
}

static inline uint64_t
linear_bucket(uint64_t used, uint64_t hash)
{
    return hash & linear_mask(used, hash);
}

static inline uint64_t
linear_reverse(uint64_t v)
{
    v = ((v >> 1) & 0x5555555555555555U) | ((v & 0x5555555555555555U) << 1);
    v = ((v >> 2) & 0x3333333333333333U) | ((v & 0x3333333333333333U) << 2);
    v = ((v >> 4) & 0x0F0F0F0F0F0F0F0FU) | ((v & 0x0F0F0F0F0F0F0F0FU) << 4);
    return __builtin_bswap64(v);
}

/* Returns the cursor of the next bucket, 0 after the last. Buckets are visited
 * in the order of their reversed bits, in which a bucket and those split off it
 * are neighbours. */
static inline uint64_t
linear_next(uint64_t used, uint64_t cursor)
{
    uint64_t mask = linear_mask(used, cursor);

    return linear_reverse(linear_reverse(cursor | ~mask) + 1);
}

/* Returns the bit by which a bucket, not 0, differs from its parent. */
static inline uint64_t
linear_bit(uint64_t bucket)
{
    return (uint64_t)1 << (63 - __builtin_clzll(bucket));
}

static inline uint64_t
linear_parent(uint64_t bucket)
{
    return bucket ^ linear_bit(bucket);
}
