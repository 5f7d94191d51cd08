/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The structs of a filter: bloom.c, codec.c and merge.c work on them, plan.c
 * counts their bytes, and the keyspace embeds them in its entries. All other
 * code sees only <bloomery/bloom.h>. Invariants: every layer but the newest is
 * full, except in kinds redisbloom, deletable and ageing; the sums of the chain
 * are those of its layers.
 *
 * A server may hold a million filters of a hundred items, and most calls are
 * for one of them. So the first 64 bytes of struct bloom are all that a lookup
 * reads of it, and the first layer needs no allocation of its own. What few
 * filters have lies elsewhere: further layers in a chain, and in struct
 * bloom_odd a seed that is not derived (core/seed.h) or an unusual tightening.
 * In place of struct bloom_odd, filters that are not native have a struct
 * bloom_extra. So have keyed filters (core/keyed.h), and incomplete ones: they
 * come in chunks (core/stream.h), and not all of their bits are there yet.
 *
 * The struct is plain bytes and nothing points into it: a filter is moved by
 * copying the struct and forgetting the old place.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/layer.h"
#include "core/siphash.h"

#define BLOOM_USUAL_TIGHTENING 0.5

struct bloom_odd {
    double tightening;
    uint8_t seed[BLOOM_SEED_BYTES];
};

/* What a layer of kind redisbloom stores besides its bits. */
struct bloom_extra_layer {
    double rate;          /* error rate that the layer was made for */
    double bits_per_item; /* from which its size was computed */
};

/* The bytes that an incomplete filter has received, as ranges of its stream.
 * Ranges are sorted, do not touch each other, and are not empty. */
enum { COVERAGE_RANGES_MAX = 256 };
struct bloom_coverage {
    uint64_t count;
    struct bloom_range {
        uint64_t from, to;
    } ranges[COVERAGE_RANGES_MAX];
};

/* The positions of the pieces of a deletable filter's copy that is being
 * completed (core/deletable.h), oldest layer first: each piece of lines
 * includes the log up to its position. */
struct bloom_pieces {
    size_t most_bytes; /* bytes of a piece, at most */
    uint32_t layers;   /* number of layers that were copied */
    uint64_t count;
    uint64_t at[];
};

struct bloom_extra {
    struct bloom_odd odd; /* first: bloom_odd_of() returns it */
    union {
        struct {              /* of kind redisbloom: */
            uint32_t options; /* core/foreign.h */
            uint32_t growth;  /* expansion in its header */
        };
        struct { /* of kind ageing */
            uint32_t seconds, generations;
        };
    };
    uint64_t older_items;            /* of all layers but the newest */
    struct bloom_coverage *coverage; /* NULL: complete */
    union {
        struct bloom_extra_layer first;  /* of kind redisbloom: layer 0 */
        struct {                         /* of kind deletable */
            uint64_t undone;             /* core/deletable.h */
            struct bloom_pieces *pieces; /* NULL unless it is being completed;
                                            not counted as its memory */
        };
        struct {               /* of kind ageing: */
            uint64_t capacity; /* as asked for */
            uint64_t turn;     /* of the newest generation: core/ageing.h */
        };
    };
};

/* The struct bloom_extra of a keyed filter, of any kind that may be one. */
struct bloom_keyed {
    struct bloom_extra extra;
    struct siphash_key key;
    uint64_t fingerprint; /* of the secret: core/keyed.h */
};

/* The layers of a filter with two or more; plan_slots() gives the length of the
 * array. */
struct bloom_chain {
    union {
        struct bloom_odd *odd; /* or NULL */
        struct bloom_extra *extra;
    };
    uint64_t capacity;     /* all layers */
    uint64_t size_bytes;   /* the whole filter */
    struct layer layers[]; /* oldest first. In kind redisbloom, a struct
                              bloom_extra_layer for each slot follows */
};

struct bloom {
    struct layer first; /* unused if there are several layers */
    uint64_t seed64;
    uint16_t count;      /* of layers */
    uint8_t traits;      /* its kind, BLOOM_TRAIT_KEYED and BLOOM_INCOMPLETE;
                            not 0: it has a struct bloom_extra */
    uint8_t short_below; /* bloom_hash() hashes shorter items inline; 0 in keyed
                            filters and foreign kinds */
    uint32_t expansion;
    union {
        struct bloom_odd *odd;     /* with one layer; or NULL */
        struct bloom_extra *extra; /* with one layer */
        struct bloom_chain *chain; /* with several layers */
    };
    double error_rate;
};

enum {
    BLOOM_INCOMPLETE = 0x80,
    BLOOM_TRAIT_KEYED = 0x40,
    BLOOM_KIND_BITS = 0x3f
};

/* The value of short_below in filters that hash by XXH3. */
enum { BLOOM_SHORT_BELOW = 17 };

_Static_assert(offsetof(struct bloom, error_rate) <= 64, "hot part: one line");
_Static_assert(sizeof(struct bloom) <= 72, "a filter has to stay small");

static inline struct layer *
bloom_layers(struct bloom *bloom)
{
    return bloom->count == 1 ? &bloom->first : bloom->chain->layers;
}

static inline enum bloom_kind
bloom_kind(const struct bloom *bloom)
{
    return (enum bloom_kind)(bloom->traits & BLOOM_KIND_BITS);
}

/* Returns whether items are hashed with a secret: core/keyed.h. */
static inline bool
bloom_is_keyed(const struct bloom *bloom)
{
    return (bloom->traits & BLOOM_TRAIT_KEYED) != 0;
}

/* Returns whether some bits have not come yet. Such a filter must not be asked,
 * added to, copied, dumped or merged. */
static inline bool
bloom_is_incomplete(const struct bloom *bloom)
{
    return __builtin_expect((bloom->traits & BLOOM_INCOMPLETE) != 0, 0);
}

/* Returns the struct bloom_extra that the filter has in place of a struct
 * bloom_odd, or NULL. */
static inline struct bloom_extra *
bloom_extra_of(const struct bloom *bloom)
{
    if (bloom->traits == 0) {
        return NULL;
    }
    return bloom->count == 1 ? bloom->extra : bloom->chain->extra;
}

/* Returns the struct bloom_keyed of a keyed filter. */
static inline struct bloom_keyed *
bloom_keyed_of(const struct bloom *bloom)
{
    return (struct bloom_keyed *)(bloom->count == 1 ? bloom->extra
                                                    : bloom->chain->extra);
}

static inline const struct layer *
bloom_layers_const(const struct bloom *bloom)
{
    return bloom->count == 1 ? &bloom->first : bloom->chain->layers;
}

static inline const struct layer *
bloom_newest(const struct bloom *bloom)
{
    return &bloom_layers_const(bloom)[bloom->count - 1];
}

/* Returns the capacity of all layers; for kind ageing, the capacity that was
 * asked for. */
static inline uint64_t
bloom_capacity(const struct bloom *bloom)
{
    if (__builtin_expect(bloom_kind(bloom) == BLOOM_AGEING, 0)) {
        return bloom_extra_of(bloom)->capacity;
    }
    return bloom->count > 1 ? bloom->chain->capacity : bloom->first.capacity;
}

/* Returns the unusual seed and tightening, or NULL. */
static inline struct bloom_odd *
bloom_odd_of(const struct bloom *bloom)
{
    return bloom->count == 1 ? bloom->odd : bloom->chain->odd;
}
