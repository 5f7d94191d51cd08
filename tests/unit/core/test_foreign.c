/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The foreign mathematics against figures of the products: hashes and bit
 * positions of valkey-bloom, sizes and hashes of layers of both. What
 * RedisBloom's hash does is tested by whole bit arrays in test_redisbloom.c.
 */
#include "core/foreign.h"

#include <string.h>

#include "../test.h"

TEST(items_hash_as_in_valkey_bloom)
{
    static const struct {
        const char *item;
        uint64_t high, low;
    } known[] = {
        { "", 0x61EC3BC33753F4D6U, 0x0AA4A3954A194204U },
        { "a", 0x19807C47E8649714U, 0x7244F2736F0FB39AU },
        { "foo", 0x949FE507B41C1BEFU, 0xEC2B7174FA3461DAU },
        { "item", 0x1589599B71175EBDU, 0xD572615A8D580348U },
        { "hello world", 0xAC93B841B8274462U, 0xE4EB2AA1593286DCU },
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct bloom_hash hash = valkeybloom_hash(
            known[i].item, strlen(known[i].item), bloom_seed_fixed);

        assert_true(hash.high == known[i].high && hash.low == known[i].low);
    }
}

TEST(bits_are_where_valkey_bloom_has_them)
{
    static const uint64_t bits[7] = { 701, 8, 461, 213, 925, 677, 429 };
    struct bloom_hash hash = valkeybloom_hash("item", 4, bloom_seed_fixed);

    for (uint32_t i = 0; i < 7; i++) {
        assert_true(valkeybloom_position(hash, i, 960) == bits[i]);
    }
}

/* valkey-bloom takes any seed, and so does this layout: with two equal halves,
 * one hash serves for both. */
TEST(a_seed_of_equal_halves_gives_one_hash_as_in_valkey_bloom)
{
    static const uint8_t zeros[BLOOM_SEED_BYTES];
    struct bloom_hash hash = valkeybloom_hash("item", 4, zeros);

    assert_true(hash.high == hash.low);
    assert_true(valkeybloom_position(hash, 0, 960) ==
                valkeybloom_position(hash, 1, 960));
    assert_true(valkeybloom_position(hash, 2, 960) !=
                valkeybloom_position(hash, 1, 960));
}

TEST(a_power_of_two_takes_the_low_bits_of_the_sum)
{
    struct bloom_hash hash = { .high = UINT64_MAX, .low = 3 };

    assert_true(redisbloom_position(hash, 0, 1000, 0) == UINT64_MAX % 1000);
    assert_true(redisbloom_position(hash, 1, 1000, 0) == 2);
    assert_true(redisbloom_position(hash, 0, 1024, 10) == 1023);
    assert_true(redisbloom_position(hash, 1, 1024, 10) == 2);
    assert_true(redisbloom_position(hash, 0, UINT64_MAX, 63) == INT64_MAX);
}

/* Without force64 both halves have 32 bits, whatever the length of the item. */
TEST(old_hashes_of_redisbloom_have_32_bits)
{
    for (size_t len = 0; len < 12; len++) {
        struct bloom_hash hash = redisbloom_hash("abcdefghijkl", len, false);
        struct bloom_hash wide = redisbloom_hash("abcdefghijkl", len, true);

        assert_true(hash.high <= UINT32_MAX && hash.low <= UINT32_MAX);
        assert_true(hash.high != wide.high);
    }
}

TEST(layers_have_the_sizes_of_valkey_bloom)
{
    static const struct {
        uint64_t capacity;
        double rate;
        uint64_t bytes;
        uint32_t hashes;
    } known[] = {
        { 100, 0.01, 120, 7 },     { 200, 0.005, 276, 8 },
        { 400, 0.0025, 624, 9 },   { 1000, 0.01, 1199, 7 },
        { 1000, 0.001, 1798, 10 }, { 10000, 0.001, 17972, 10 },
        { 1000, 0.5, 181, 1 },     { 1, 0.01, 2, 11 },
        { 1, 0.999, 1, 6 },
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct geometry geometry =
            valkeybloom_geometry(known[i].capacity, known[i].rate);

        assert_true(geometry.lines == known[i].bytes * 8);
        assert_int_equal(known[i].hashes, geometry.stripes);
    }
    assert_true(valkeybloom_geometry(INT64_MAX, 0.01).lines == 0);
}

TEST(layers_have_the_sizes_of_redisbloom)
{
    static const struct {
        uint64_t capacity;
        double rate;
        uint64_t bytes;
        uint32_t hashes;
    } known[] = {
        { 100, 0.005, 144, 8 },
        { 100, 0.01, 120, 7 },
        { 1000, 0.0005, 1984, 11 },
        { 10000000, 5e-05, 25766016, 15 },
        { 1 << 30, 0.005, 1480120016, 8 },
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct geometry geometry =
            redisbloom_geometry(known[i].capacity, known[i].rate);

        assert_true(geometry.lines == known[i].bytes * 8);
        assert_int_equal(known[i].hashes, geometry.stripes);
    }
    assert_true(redisbloom_geometry(INT64_MAX, 1e-300).lines == 0);
    assert_int_equal(0, redisbloom_hashes(1e9));
    assert_int_equal(0, redisbloom_hashes(0));
}
