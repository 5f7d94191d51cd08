/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The structs of a filter: bloom.c, codec.c and merge.c work on them, plan.c
 * counts their bytes, and the keyspace embeds them in its entries. All other
 * code sees only <bloomery/bloom.h>. Invariants: every layer but the newest is
 * full; the sums of the chain are those of its layers.
 *
 * A server may hold a million filters of a hundred items, and most calls are
 * for one of them. So the first 64 bytes of struct bloom are all that a lookup
 * reads of it, and the first layer needs no allocation of its own. What few
 * filters have lies elsewhere: further layers in a chain, and in struct
 * bloom_odd a seed that is not derived (core/seed.h) or an unusual tightening.
 *
 * The struct is plain bytes and nothing points into it: a filter is moved by
 * copying the struct and forgetting the old place.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stddef.h>
#include <stdint.h>

#include "core/layer.h"

#define BLOOM_USUAL_TIGHTENING 0.5

struct bloom_odd {
    double tightening;
    uint8_t seed[BLOOM_SEED_BYTES];
};

/* The layers of a filter with two or more; plan_slots() gives the length of the
 * array. */
struct bloom_chain {
    struct bloom_odd *odd; /* or NULL */
    uint64_t capacity;     /* all layers */
    uint64_t size_bytes;   /* the whole filter */
    struct layer layers[]; /* oldest first */
};

struct bloom {
    struct layer first; /* unused if there are several layers */
    uint64_t seed64;
    uint32_t count; /* of layers */
    uint32_t expansion;
    union {
        struct bloom_odd *odd;     /* with one layer; or NULL */
        struct bloom_chain *chain; /* with several layers */
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
