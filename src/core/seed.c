/* SPDX-License-Identifier: BSD-3-Clause
 *
 * XXH3_64bits() of 32 bytes, read as four little-endian words w, is
 *
 *     avalanche(32 P1 + fold((w0 ^ s0) (w1 ^ s1)) + fold((w2 ^ s2) (w3 ^ s3)))
 *
 * where s0 ... s3 begin its default secret, and fold is the exclusive or of
 * the two halves of a product of 128 bits (Yann Collet, xxHash specification).
 * With w3 = s3 ^ 1 the second fold is simply w2 ^ s2. Every step after it can
 * be inverted, so that exactly one w2 leads to a given hash.
 */
#include "core/seed.h"

#include <endian.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SECRET_2  0xDB979083E96DD4DEU
#define SECRET_3  0x1F67B3B7A4A44072U
#define UNDO_MULT 0x08DA8EE41D6DF849U /* x 0x165667919E3779F9 = 1 */

enum { WORDS = BLOOM_SEED_BYTES / 8 };

const uint8_t bloom_seed_fixed[BLOOM_SEED_BYTES] = {
    0x59, 0x0f, 0xf5, 0x22, 0xea, 0x78, 0x11, 0xda, 0xa7, 0x14, 0xd8,
    0x09, 0x3b, 0x3e, 0x7b, 0xd9, 0x1d, 0x89, 0x8a, 0x73, 0x3e, 0x98,
    0x88, 0x87, 0x30, 0x7f, 0x97, 0xcd, 0x28, 0x07, 0x33, 0x83,
};

/* Two seeds that many filters share. */
static const uint8_t zero_seed[BLOOM_SEED_BYTES];
static const struct known {
    uint64_t seed64;
    const uint8_t *seed;
} known[] = {
    { 0x573EDB97F39AEDB1U, bloom_seed_fixed },
    { 0xA057271C9071C99DU, zero_seed },
};

uint64_t
seed_hash(const uint8_t seed[BLOOM_SEED_BYTES])
{
    return XXH3_64bits(seed, BLOOM_SEED_BYTES);
}

static uint64_t
undo_avalanche(uint64_t hash)
{
    hash ^= hash >> 32;
    hash *= UNDO_MULT;
    return hash ^ (hash >> 37);
}

static void
put_words(uint64_t word2, uint8_t ret_seed[BLOOM_SEED_BYTES])
{
    const uint64_t words[WORDS] = { 0, 0, htole64(word2),
                                    htole64(SECRET_3 ^ 1) };

    memcpy(ret_seed, words, BLOOM_SEED_BYTES);
}

void
bloom_seed(uint64_t seed64, uint8_t ret_seed[BLOOM_SEED_BYTES])
{
    uint64_t others; /* the sum without the second fold */

    for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].seed64 == seed64) {
            memcpy(ret_seed, known[i].seed, BLOOM_SEED_BYTES);
            return;
        }
    }
    put_words(SECRET_2, ret_seed);
    others = undo_avalanche(seed_hash(ret_seed));
    put_words(SECRET_2 ^ (undo_avalanche(seed64) - others), ret_seed);
}

/* Of all seeds of this form only one has this hash: see bloom_seed(). */
bool
seed_is_derived(const uint8_t seed[BLOOM_SEED_BYTES], uint64_t seed64)
{
    uint8_t form[BLOOM_SEED_BYTES];
    uint64_t words[WORDS];

    for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].seed64 == seed64) {
            return memcmp(known[i].seed, seed, BLOOM_SEED_BYTES) == 0;
        }
    }
    memcpy(words, seed, BLOOM_SEED_BYTES);
    put_words(le64toh(words[2]), form);
    return memcmp(form, seed, BLOOM_SEED_BYTES) == 0;
}
