/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Life of the structs of core/filter.h, for the other files of this room:
 * struct bloom_odd or bloom_extra, and the chain. The caller owns the filter.
 */
#pragma once

#include <stdbool.h>

#include "core/filter.h"

/* The least size that a caller's struct bloom_params may have: that of version
 * 1 of the library. */
enum { BLOOM_LEAST_PARAMS = 88 };

/* Return the items and the bytes, as bloom_get_info() does, in constant time
 * for any number of layers. */
uint64_t bloom_items(const struct bloom *bloom);
uint64_t bloom_size(const struct bloom *bloom); /* bytes */

/* Checks the invariants of core/filter.h: the items of each layer, the sums of
 * the chain, and the size. It aborts if one is broken, which is our bug. */
void bloom_check(const struct bloom *bloom);

/* Makes a chain with slots for COUNT layers, more than one, and copies all
 * that BLOOM has into it, sums included. NULL: no memory. */
struct bloom_chain *bloom_chain_new(const struct bloom *bloom, uint32_t count,
                                    const struct bloom_env *env);
void bloom_chain_free(const struct bloom *bloom, struct bloom_chain *chain,
                      uint32_t count, const struct bloom_env *env);

/* Gives the filter a chain of COUNT layers, which may be the one it has. Frees
 * the chain it had before if that is another one. */
void bloom_set_chain(struct bloom *bloom, struct bloom_chain *chain,
                     uint32_t count, const struct bloom_env *env);

/* Fills in an empty struct: the parameters that do not depend on the number of
 * layers, and struct bloom_odd or bloom_extra, as PARTS say (core/plan.h). With
 * PLAN_COVERAGE, the filter is incomplete. Without memory returns false, and
 * there is nothing to undo. */
bool bloom_set_params(struct bloom *bloom, const struct bloom_params *params,
                      unsigned parts, const struct bloom_env *env);

/* Returns which parts the filter has, as PLAN_* bits (core/plan.h). */
unsigned bloom_parts(const struct bloom *bloom);

/* Returns the array that a filter of kind redisbloom has for its layers. */
struct bloom_extra_layer *bloom_extra_layers(const struct bloom *bloom);

/* Makes an incomplete filter complete, and frees what it does not need any
 * more. Without memory for a struct bloom_odd returns false, and the filter is
 * unchanged. */
bool bloom_complete(struct bloom *bloom, const struct bloom_env *env);

/* Does what bloom_fini() does, but does not free the lines of the layers. */
void bloom_free_structs(struct bloom *bloom, const struct bloom_env *env);

/* Frees everything that the struct points to, but not the struct. */
void bloom_fini(struct bloom *bloom, const struct bloom_env *env);

/* Moves a filter to a struct of its own. Without memory, it frees all that the
 * filter points to, and returns BLOOM_NOMEM. */
enum bloom_status bloom_keep(struct bloom *made, const struct bloom_env *env,
                             struct bloom **ret_bloom);

/* Gives a filter of kind deletable, which is being completed, the positions of
 * its pieces (core/filter.h), or NULL for none. Frees the positions that it
 * had. */
void bloom_set_pieces(struct bloom *bloom, struct bloom_pieces *pieces,
                      const struct bloom_env *env);

/* Returns whether the filter has positions of pieces. */
static inline bool
bloom_has_pieces(const struct bloom *bloom)
{
    const struct bloom_extra *extra =
        bloom_kind(bloom) == BLOOM_DELETABLE ? bloom_extra_of(bloom) : NULL;

    return extra != NULL && extra->pieces != NULL;
}

/* Allocates room for COUNT positions. NULL: no memory. */
struct bloom_pieces *bloom_new_pieces(uint64_t count,
                                      const struct bloom_env *env);

/* Returns how many layers stand before this one in its series of capacities and
 * rates: all older ones; in kind ageing, only the older ones of its generation.
 */
uint32_t bloom_step(const struct bloom *bloom, uint32_t index);

double bloom_tightening(const struct bloom *bloom);
void bloom_get_seed(const struct bloom *bloom,
                    uint8_t ret_seed[BLOOM_SEED_BYTES]);
