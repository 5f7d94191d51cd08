/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Life and growth of the structs of core/filter.h, for codec.c, merge.c and
 * the keyspace. Invariant: bloom_size() is what plan_size() computes.
 */
#pragma once

#include <stdbool.h>

#include "core/filter.h"

/* Frees everything that the struct points to, but not the struct. */
void bloom_fini(struct bloom *bloom, const struct bloom_env *env);

/* By how much bloom_size() rose when the newest layer, not the first, came. */
uint64_t bloom_growth_bytes(const struct bloom *bloom);

/* ---- for the rest of this layer ------------------------------------------ */

/* Checks the invariants of core/filter.h: the items of each layer, the sums of
 * the chain, and the size. It aborts if one is broken, which is our bug. */
void bloom_check(const struct bloom *bloom);

/* Makes a chain with slots for COUNT layers, more than one, and copies all
 * that BLOOM has into it, sums included. NULL: no memory. */
struct bloom_chain *bloom_chain_new(const struct bloom *bloom, uint32_t count,
                                    const struct bloom_env *env);
void bloom_chain_free(struct bloom_chain *chain, uint32_t count,
                      const struct bloom_env *env);

/* Gives the filter a chain of COUNT layers, which may be the one it has, and
 * frees the one it had before. */
void bloom_set_chain(struct bloom *bloom, struct bloom_chain *chain,
                     uint32_t count, const struct bloom_env *env);

/* Fills in an empty struct: the parameters that do not depend on the number of
 * layers, and struct bloom_odd. False, and nothing to undo, if there is no
 * memory for the latter. */
bool bloom_set_params(struct bloom *bloom, const struct bloom_params *params,
                      bool odd, const struct bloom_env *env);

/* Does what bloom_fini() does, but leaves the layers' lines. */
void bloom_free_structs(struct bloom *bloom, const struct bloom_env *env);

double bloom_tightening(const struct bloom *bloom);
void bloom_get_seed(const struct bloom *bloom,
                    uint8_t ret_seed[BLOOM_SEED_BYTES]);
