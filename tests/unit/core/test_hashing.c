/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hash of an item, by length, kind and secret.
 */
#include "core/filter.h"

#include "../test.h"
#include "help.h"

#include "core/seed.h"

#include <xxhash.h>

enum { LONGEST = 300 };

static void
assert_hash(struct bloom_hash hash, uint64_t high, uint64_t low)
{
    assert_true(hash.high == high && hash.low == low);
}

TEST(native_filters_hash_by_xxh3_at_every_length)
{
    struct bloom_params params = params_of(100, 0.01, 2);
    struct bloom *bloom = make(&params, NULL);
    uint64_t seed64 = seed_hash(params.seed);
    uint8_t item[LONGEST];

    for (unsigned i = 0; i < LONGEST; i++) {
        item[i] = (uint8_t)(i * 7);
    }
    for (size_t len = 0; len < LONGEST; len++) {
        XXH128_hash_t hash = XXH3_128bits_withSeed(item, len, seed64);

        assert_hash(bloom_hash(bloom, item, len), hash.high64, hash.low64);
    }
    bloom_free(bloom, NULL);
}

TEST(keyed_filters_hash_by_siphash_at_every_length)
{
    static const uint8_t secret[BLOOM_SECRET_BYTES] = "sixteen bytes...";
    struct bloom_params params = params_of(100, 0.01, 2);
    uint8_t item[LONGEST] = { 0 };
    struct siphash_key key;
    struct bloom *bloom;

    bloom_use_secret(secret);
    params.flags = BLOOM_KEYED;
    bloom = make(&params, NULL);
    key = bloom_keyed_of(bloom)->key;
    (void)fill(bloom, NULL, 0, 50);
    for (size_t len = 0; len < LONGEST; len++) {
        assert_true(bloom_hash(bloom, item, len).high ==
                    siphash_of(key, item, len));
    }
    (void)fill(bloom, NULL, 1000, 1000);
    assert_true(bloom->count > 1); /* the key is behind the chain now */
    assert_true(bloom_hash(bloom, item, 20).high == siphash_of(key, item, 20));
    bloom_free(bloom, NULL);
    bloom_use_secret(NULL);
}
