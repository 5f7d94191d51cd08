/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SipHash as Aumasson and Bernstein define it ("SipHash: a fast short-input
 * PRF", INDOCRYPT 2012), with 1 round a word and 3 at the end, as Rust and
 * Python hash their tables: without the key, nobody can choose items with
 * related hashes. The parts of the function are here, so that a message can be
 * more than one string of bytes. Pure functions, any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/little.h"

struct siphash_key {
    uint64_t k0, k1;
};

struct siphash {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t
siphash_rotate(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static inline void
siphash_round(struct siphash *sip)
{
    sip->v0 += sip->v1;
    sip->v1 = siphash_rotate(sip->v1, 13) ^ sip->v0;
    sip->v0 = siphash_rotate(sip->v0, 32);
    sip->v2 += sip->v3;
    sip->v3 = siphash_rotate(sip->v3, 16) ^ sip->v2;
    sip->v0 += sip->v3;
    sip->v3 = siphash_rotate(sip->v3, 21) ^ sip->v0;
    sip->v2 += sip->v1;
    sip->v1 = siphash_rotate(sip->v1, 17) ^ sip->v2;
    sip->v2 = siphash_rotate(sip->v2, 32);
}

static inline struct siphash
siphash_begin(struct siphash_key key)
{
    return (struct siphash){ key.k0 ^ 0x736F6D6570736575U,
                             key.k1 ^ 0x646F72616E646F6DU,
                             key.k0 ^ 0x6C7967656E657261U,
                             key.k1 ^ 0x7465646279746573U };
}

static inline void
siphash_word(struct siphash *sip, uint64_t word)
{
    sip->v3 ^= word;
    siphash_round(sip);
    sip->v0 ^= word;
}

/* Returns fewer than 8 bytes as a word, by reads that overlap. */
static inline uint64_t
siphash_rest(const uint8_t *at, size_t len)
{
    if (len >= 4) {
        return get_u32(at) | (uint64_t)get_u32(at + len - 4) << 8 * (len - 4);
    }
    if (len == 0) {
        return 0;
    }
    return at[0] | (uint64_t)at[len / 2] << 8 * (len / 2) |
           (uint64_t)at[len - 1] << 8 * (len - 1);
}

/* Adds the last bytes of a message, whose length is WHOLE, and ends it. */
static inline uint64_t
siphash_end(struct siphash *sip, const uint8_t *at, size_t len, uint64_t whole)
{
    for (; len >= 8; len -= 8, at += 8) {
        siphash_word(sip, get_u64(at));
    }
    siphash_word(sip, siphash_rest(at, len) | whole << 56);
    sip->v2 ^= 0xff;
    siphash_round(sip);
    siphash_round(sip);
    siphash_round(sip);
    return sip->v0 ^ sip->v1 ^ sip->v2 ^ sip->v3;
}

static inline uint64_t
siphash_of(struct siphash_key key, const void *data, size_t len)
{
    struct siphash sip = siphash_begin(key);

    return siphash_end(&sip, data, len, len);
}
