/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Derived seeds: one for each number, found again by its hash alone.
 */
#include "core/seed.h"

#include "../test.h"
#include "help.h"

#include <xxhash.h>

static void
check_number(uint64_t number)
{
    uint8_t seed[BLOOM_SEED_BYTES];

    bloom_seed(number, seed);
    assert_true(XXH3_64bits(seed, sizeof(seed)) == number);
    assert_true(seed_hash(seed) == number);
    assert_true(seed_is_derived(seed, number));
    for (unsigned i = 0; i < BLOOM_SEED_BYTES; i++) {
        seed[i] ^= (uint8_t)(1U << number % 8);
        /* Bytes 16 to 23 make the seed of another number. */
        assert_int_equal(i >= 16 && i < 24,
                         seed_is_derived(seed, seed_hash(seed)));
        seed[i] ^= (uint8_t)(1U << number % 8);
    }
}

TEST(every_number_has_a_seed_with_this_hash)
{
    uint64_t random = test_seed();

    check_number(0);
    check_number(UINT64_MAX);
    for (unsigned i = 0; i < 64; i++) {
        check_number((uint64_t)1 << i);
    }
    for (unsigned i = 0; i < 10000; i++) {
        check_number(test_random(&random));
    }
}

/* They are stored: nobody may change them. */
TEST(derived_seeds_are_fixed_for_ever)
{
    static const uint8_t of_1[BLOOM_SEED_BYTES] = {
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x37, 0x9d, 0x88, 0x0d, 0x5d, 0xb4,
        0xe9, 0x80, 0x73, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    };
    uint8_t seed[BLOOM_SEED_BYTES];

    bloom_seed(1, seed);
    assert_memory_equal(of_1, seed, BLOOM_SEED_BYTES);
}

TEST(two_common_seeds_count_as_derived)
{
    static const uint8_t zero[BLOOM_SEED_BYTES];
    const uint8_t *const seeds[] = { zero, bloom_seed_fixed };

    for (unsigned i = 0; i < 2; i++) {
        uint64_t hash = XXH3_64bits(seeds[i], BLOOM_SEED_BYTES);
        uint8_t seed[BLOOM_SEED_BYTES];

        assert_true(seed_is_derived(seeds[i], hash));
        bloom_seed(hash, seed);
        assert_memory_equal(seeds[i], seed, BLOOM_SEED_BYTES);
    }
}

TEST(a_seed_of_32_random_bytes_is_not_derived)
{
    uint64_t random = test_seed();

    for (unsigned i = 0; i < 1000; i++) {
        uint8_t seed[BLOOM_SEED_BYTES];

        for (unsigned b = 0; b < BLOOM_SEED_BYTES; b++) {
            seed[b] = (uint8_t)test_random(&random);
        }
        assert_false(seed_is_derived(seed, seed_hash(seed)));
    }
}
