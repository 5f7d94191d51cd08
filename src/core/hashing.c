/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hash of one item. Short items of ordinary filters come first, without a
 * stack frame; other cases are calls from there.
 */
#include <bloomery/bloom.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/filter.h"
#include "core/foreign.h"
#include "core/keyed.h"

#define NOINLINE __attribute__((noinline))

/* Hashes an item of a keyed filter, or of a foreign kind. */
NOINLINE static struct bloom_hash
hash_otherwise(const struct bloom *bloom, const void *item, size_t len)
{
    const struct bloom_extra *extra = bloom_extra_of(bloom);

    if (bloom_is_keyed(bloom)) {
        return keyed_hash(bloom_keyed_of(bloom)->key, item, len);
    }
    if (bloom_kind(bloom) == BLOOM_REDISBLOOM) {
        return redisbloom_hash(item, len,
                               (extra->options & REDISBLOOM_FORCE64) != 0);
    }
    return valkeybloom_hash(item, len, extra->odd.seed);
}

NOINLINE static struct bloom_hash
hash_long(const struct bloom *bloom, const void *item, size_t len)
{
    XXH128_hash_t hash;

    if (bloom->short_below == 0) {
        return hash_otherwise(bloom, item, len);
    }
    hash = XXH3_128bits_withSeed(item, len, bloom->seed64);
    return (struct bloom_hash){ .high = hash.high64, .low = hash.low64 };
}

/* `flatten` inlines the hash, and __builtin_unreachable() leaves only its
 * branch for short items. LEN is compared with a field, so that one branch
 * serves long items, keyed filters and foreign kinds. */
__attribute__((flatten)) struct bloom_hash
bloom_hash(const struct bloom *bloom, const void *item, size_t len)
{
    XXH128_hash_t hash;

    if (len >= bloom->short_below) {
        return hash_long(bloom, item, len);
    }
    if (len >= BLOOM_SHORT_BELOW) {
        __builtin_unreachable();
    }
    hash = XXH3_128bits_withSeed(item, len, bloom->seed64);
    return (struct bloom_hash){ .high = hash.high64, .low = hash.low64 };
}
