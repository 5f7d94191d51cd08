/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a filter is made of, for the files that make one (bloom.c, codec.c and
 * merge.c), and for the keyspace, which has filters inside of its entries.
 * Everybody else has <bloomery/bloom.h>. Invariants: every layer but the newest
 * is full; bloom_size() is what plan_size() says.
 *
 * A server may hold a million filters of a hundred items, and most calls are
 * for one of them. So what a lookup reads of struct bloom is its first 64
 * bytes, the first layer needs no allocation of its own, and what few filters
 * have is elsewhere: more layers in a chain, and what is odd about a filter, a
 * seed that is not derived (core/seed.h) or an unusual tightening.
 *
 * The struct is plain bytes and nothing points into it: to copy it somewhere
 * else, and forget the old place, is to move the filter.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/layer.h"

#define BLOOM_USUAL_TIGHTENING 0.5

struct bloom_odd {
    double tightening;
    uint8_t seed[BLOOM_SEED_BYTES];
};

/* plan_slots() says how many layers fit. */
struct bloom_chain {
    struct bloom_odd *odd; /* or NULL */
    uint64_t capacity;     /* all layers */
    uint64_t size_bytes;   /* the whole filter */
    struct layer layers[]; /* oldest first */
};

struct bloom {
    struct layer first; /* while it is the only one */
    uint64_t seed64;
    uint32_t count; /* of layers */
    uint32_t expansion;
    union {
        struct bloom_odd *odd;     /* of one layer; or NULL */
        struct bloom_chain *chain; /* of several */
    };
    double error_rate;
};

_Static_assert(offsetof(struct bloom, error_rate) <= 64, "hot part: one line");
_Static_assert(sizeof(struct bloom) <= 72, "a filter has to stay small");

static inline struct layer *
bloom_layers(struct bloom *bloom)
{
    return bloom->count == 1 ? &bloom->first : bloom->chain->layers;
}

static inline const struct layer *
bloom_layers_const(const struct bloom *bloom)
{
    return bloom->count == 1 ? &bloom->first : bloom->chain->layers;
}

/* Frees what hangs on the filter, but not the struct. */
void bloom_fini(struct bloom *bloom, const struct bloom_env *env);

/* By how much bloom_size() rose when the newest layer, not the first, came. */
uint64_t bloom_growth_bytes(const struct bloom *bloom);

/* ---- for the rest of this layer ------------------------------------------ */

/* A chain with room for COUNT layers, more than one, and in it all that BLOOM
 * has, sums included. NULL: no memory. */
struct bloom_chain *bloom_chain_new(const struct bloom *bloom, uint32_t count,
                                    const struct bloom_env *env);
void bloom_chain_free(struct bloom_chain *chain, uint32_t count,
                      const struct bloom_env *env);

/* Takes a chain for what is COUNT layers from now on, and frees the one it had
 * before, if that is another. */
void bloom_set_chain(struct bloom *bloom, struct bloom_chain *chain,
                     uint32_t count, const struct bloom_env *env);

/* Of an empty struct: what is the same for a filter of any length, and what is
 * odd about it. False, and nothing to undo, without memory for that. */
bool bloom_set_params(struct bloom *bloom, const struct bloom_params *params,
                      bool odd, const struct bloom_env *env);

/* What bloom_fini() does, but for the layers' lines. */
void bloom_free_structs(struct bloom *bloom, const struct bloom_env *env);

double bloom_tightening(const struct bloom *bloom);
void bloom_get_seed(const struct bloom *bloom,
                    uint8_t ret_seed[BLOOM_SEED_BYTES]);
