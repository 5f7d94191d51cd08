/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MurmurHash64A and MurmurHash2 as Austin Appleby published them (SMHasher,
 * public domain).
 */
#include "core/foreign.h"

#include <math.h>
#include <string.h>

#include "base/little.h"
#include "core/siphash.h"

/* ---- RedisBloom ---------------------------------------------------------- */

#define MURMUR_64_MULT 0xC6A4A7935BD1E995U
#define MURMUR_32_MULT 0x5BD1E995U
#define MURMUR_32_SEED 0x9747B28CU

static uint64_t
murmur64a(const uint8_t *at, size_t len, uint64_t seed)
{
    uint64_t hash = seed ^ (len * MURMUR_64_MULT);
    uint64_t tail = 0;

    for (; len >= 8; len -= 8, at += 8) {
        uint64_t word = get_u64(at) * MURMUR_64_MULT;

        hash ^= (word ^ word >> 47) * MURMUR_64_MULT;
        hash *= MURMUR_64_MULT;
    }
    if (len > 0) {
        while (len-- > 0) {
            tail = tail << 8 | at[len];
        }
        hash = (hash ^ tail) * MURMUR_64_MULT;
    }
    hash = (hash ^ hash >> 47) * MURMUR_64_MULT;
    return hash ^ hash >> 47;
}

static uint32_t
murmur2(const uint8_t *at, size_t len, uint32_t seed)
{
    uint32_t hash = seed ^ (uint32_t)len;
    uint32_t tail = 0;

    for (; len >= 4; len -= 4, at += 4) {
        uint32_t word = get_u32(at) * MURMUR_32_MULT;

        word = (word ^ word >> 24) * MURMUR_32_MULT;
        hash = hash * MURMUR_32_MULT ^ word;
    }
    if (len > 0) {
        while (len-- > 0) {
            tail = tail << 8 | at[len];
        }
        hash = (hash ^ tail) * MURMUR_32_MULT;
    }
    hash = (hash ^ hash >> 13) * MURMUR_32_MULT;
    return hash ^ hash >> 15;
}

struct bloom_hash
redisbloom_hash(const void *item, size_t len, bool force64)
{
    struct bloom_hash hash;

    if (force64) {
        hash.high = murmur64a(item, len, MURMUR_64_MULT);
        hash.low = murmur64a(item, len, hash.high);
    } else {
        hash.high = murmur2(item, len, MURMUR_32_SEED);
        hash.low = murmur2(item, len, (uint32_t)hash.high);
    }
    return hash;
}

double
redisbloom_bits_per_item(double rate)
{
    return fabs(log(rate) / 0.480453013918201);
}

uint32_t
redisbloom_hashes(double bits_per_item)
{
    double hashes = ceil(0.693147180559945 * bits_per_item);

    return hashes >= 1 && hashes <= FOREIGN_HASHES_MAX ? (uint32_t)hashes : 0;
}

struct geometry
redisbloom_geometry(uint64_t capacity, double rate)
{
    double bits_per_item = redisbloom_bits_per_item(rate);
    double bits = (double)capacity * bits_per_item;
    struct geometry geometry = { .stripes = redisbloom_hashes(bits_per_item) };

    if (bits < 0x1p62) {
        geometry.lines = bits < 1 ? 1 : (uint64_t)bits;
        geometry.lines = (geometry.lines + 63) / 64 * 64;
    }
    return geometry;
}

/* ---- valkey-bloom -------------------------------------------------------- */

/* Hashes the item as Rust does: its length comes first. */
static uint64_t
sip_item(const uint8_t *at, size_t len, const uint8_t key[16])
{
    struct siphash sip = siphash_begin(
        (struct siphash_key){ .k0 = get_u64(key), .k1 = get_u64(key + 8) });

    siphash_word(&sip, len);
    return siphash_end(&sip, at, len, len + 8);
}

struct bloom_hash
valkeybloom_hash(const void *item, size_t len,
                 const uint8_t seed[BLOOM_SEED_BYTES])
{
    return (struct bloom_hash){
        .high = sip_item(item, len, seed),
        .low = sip_item(item, len, seed + BLOOM_SEED_BYTES / 2),
    };
}

struct geometry
valkeybloom_geometry(uint64_t capacity, double rate)
{
    static const double ln2 = 0.69314718055994530942;
    uint64_t bytes = sizing_classic_bytes(capacity, rate);
    struct geometry geometry = { .lines = 0 };
    double hashes;

    if (bytes == 0 || bytes >= (uint64_t)1 << 60) {
        return geometry;
    }
    geometry.lines = bytes * 8;
    hashes = round((double)geometry.lines / (double)capacity * ln2);
    geometry.stripes = hashes < 1 ? 1 : (uint32_t)hashes;
    return geometry;
}
