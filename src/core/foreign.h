/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The mathematics of the two foreign kinds of layer: RedisBloom's and
 * valkey-bloom's hashes, bit positions and sizes, bit for bit. Both are classic
 * Bloom filters: an item sets `hashes` of `bits` bits, and bit x of the array
 * is bit x & 63 of word x >> 6, in the machine's order. In stored bytes, which
 * are little-endian, that is bit x & 7 of byte x >> 3. Pure functions, any
 * thread.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/sizing.h"

/* RedisBloom's options of a filter. */
enum {
    REDISBLOOM_NOROUND = 1,
    REDISBLOOM_FORCE64 = 4, /* 64-bit hashes */
    REDISBLOOM_NO_SCALING = 8,
    REDISBLOOM_OPTIONS_ALL = 15,
    REDISBLOOM_LOG2_MAX = 63
};

/* Each layer has the rate of the layer before it, times this. */
#define REDISBLOOM_TIGHTENING 0.5

/* Returns whether a kind is one of the two foreign ones. */
static inline bool
foreign_is(uint32_t kind)
{
    return kind == BLOOM_REDISBLOOM || kind == BLOOM_VALKEYBLOOM;
}

/* More hashes than the smallest positive rate needs, in both products. */
#define FOREIGN_HASHES_MAX 1100

/* Hashes an item as RedisBloom does, for which hash i is (high + i low) mod
 * 2^64. `high` is MurmurHash64A of the item, and `low` the same with `high` as
 * seed. Without force64, both are MurmurHash2, which has 32 bits. */
struct bloom_hash redisbloom_hash(const void *item, size_t len, bool force64);

/* Hashes an item as valkey-bloom does: SipHash-1-3 of its length in 8 bytes and
 * the item, with each half of the seed as a key. */
struct bloom_hash valkeybloom_hash(const void *item, size_t len,
                                   const uint8_t seed[BLOOM_SEED_BYTES]);

/* Return the position of the INDEXth bit of an item. If LOG2 is not 0, the
 * modulus is 2^LOG2, as in filters of RedisBloom 2.0 and older. */
static inline uint64_t
redisbloom_position(struct bloom_hash hash, uint32_t index, uint64_t bits,
                    unsigned log2)
{
    uint64_t sum = hash.high + index * hash.low;

    return log2 > 0 ? sum & (((uint64_t)1 << log2) - 1) : sum % bits;
}

static inline uint64_t
valkeybloom_position(struct bloom_hash hash, uint32_t index, uint64_t bits)
{
    const uint64_t prime = 0xFFFFFFFFFFFFFFC5U; /* the largest below 2^64 */

    if (index < 2) {
        return (index == 0 ? hash.high : hash.low) % bits;
    }
    return (hash.high + index * hash.low) % prime % bits;
}

/* Return the layer for CAPACITY items at RATE: .stripes are the hashes and
 * .lines the bits. 0 bits: there is no such layer, since it would have 2^62 or
 * more (RedisBloom), or 2^63 or more (valkey-bloom). */
struct geometry redisbloom_geometry(uint64_t capacity, double rate);
struct geometry valkeybloom_geometry(uint64_t capacity, double rate);

/* Returns the bits per item for this rate, as RedisBloom stores them. */
double redisbloom_bits_per_item(double rate);

/* Returns the number of hashes for so many bits per item; 0 if it is below 1 or
 * above FOREIGN_HASHES_MAX. */
uint32_t redisbloom_hashes(double bits_per_item);

/* Returns the number of bytes that store an array of so many bits. */
static inline uint64_t
foreign_bytes(uint64_t bits)
{
    return bits / 8 + (bits % 8 != 0);
}
