/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Seeds that need no room of their own. Of the 32 bytes only seed64, their
 * XXH3-64, takes part in hashing, and a filter has it at hand; the bytes are
 * kept for who stores them. So for each seed64 there is one seed that is
 * derived from it, by bloom_seed(), and a filter with this one keeps nothing
 * else. Pure functions, any thread.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stdint.h>

/* seed64 of any seed. */
uint64_t seed_hash(const uint8_t seed[BLOOM_SEED_BYTES]);

/* Whether bloom_seed() makes this seed of SEED64, its hash. */
bool seed_is_derived(const uint8_t seed[BLOOM_SEED_BYTES], uint64_t seed64);
