/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Seeds that need no memory of their own. Hashing uses only seed64, the XXH3-64
 * of the 32 bytes of a seed; each filter has it. The 32 bytes are needed only
 * for dumps. For each seed64 bloom_seed() derives one seed, and a filter with a
 * derived seed stores only seed64. Pure functions, any thread.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns the seed64 of any seed. */
uint64_t seed_hash(const uint8_t seed[BLOOM_SEED_BYTES]);

/* Returns whether bloom_seed() derives this seed from SEED64, its hash. */
bool seed_is_derived(const uint8_t seed[BLOOM_SEED_BYTES], uint64_t seed64);
