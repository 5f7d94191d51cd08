/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hash of names depends on their bytes and the process's seed alone, and
 * spreads names that look alike over the stripes, which take its high bits.
 */
#include "base/hash.h"

#include "../test.h"

#include <stdio.h>

TEST(equal_names_hash_alike_wherever_they_lie)
{
    char room[64 + 300];

    for (size_t len = 0; len < 300; len++) {
        char name[300];
        uint64_t hash;

        for (size_t i = 0; i < len; i++) {
            name[i] = (char)(i * 7 + len);
        }
        hash = hash_name((struct slice){ name, len });
        for (size_t shift = 1; shift < 64; shift += 13) {
            memcpy(room + shift, name, len);
            assert_true(hash == hash_name((struct slice){ room + shift, len }));
        }
    }
}

TEST(each_byte_and_the_length_matter)
{
    char name[40] = "0123456789012345678901234567890123456789";
    uint64_t hash = hash_name((struct slice){ name, sizeof(name) });

    for (size_t i = 0; i < sizeof(name); i++) {
        name[i] ^= 1;
        assert_true(hash != hash_name((struct slice){ name, sizeof(name) }));
        name[i] ^= 1;
        assert_true(hash != hash_name((struct slice){ name, i }));
    }
}

TEST(a_drawn_seed_changes_the_hashes)
{
    uint64_t before = hash_name(slice_lit("name"));
    uint64_t once;

    hash_seed_process();
    once = hash_name(slice_lit("name"));
    assert_true(before != once); /* equal by chance: 2^-64 */
    hash_seed_process();
    assert_true(once != hash_name(slice_lit("name")));
}

TEST(names_in_sequence_spread_over_the_high_bits)
{
    enum { STRIPES = 1024, NAMES = 256 * STRIPES };
    static unsigned count[STRIPES];

    hash_seed_process();
    for (unsigned i = 0; i < NAMES; i++) {
        char name[32];
        int len = snprintf(name, sizeof(name), "user:%u", i);

        count[hash_name((struct slice){ name, (size_t)len }) >> 54]++;
    }
    for (int i = 0; i < STRIPES; i++) { /* 256 expected, sigma 16 */
        assert_in_range(count[i], 256 - 128, 256 + 128);
    }
}
