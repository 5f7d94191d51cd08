/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The parts of a filter's struct beside its lines: struct bloom_odd or
 * bloom_extra, and the chain. Allocation, release and invariants.
 */
#include "core/parts.h"

#include <string.h>

#include "base/err.h"
#include "core/env.h"
#include "core/foreign.h"
#include "core/keyed.h"
#include "core/plan.h"
#include "core/seed.h"
#include "core/turns.h"
#include "core/versioned.h"

/* The expansion in RedisBloom's header for a filter that NONSCALING has made.
 */
enum { NONSCALING_GROWTH = 2 };

/* Sets the pointer where the filter has it: in its struct or in its chain. */
static void
set_odd(struct bloom *bloom, struct bloom_odd *odd)
{
    if (bloom->count == 1) {
        bloom->odd = odd;
    } else {
        bloom->chain->odd = odd;
    }
}

unsigned
bloom_parts(const struct bloom *bloom)
{
    const struct bloom_extra *extra = bloom_extra_of(bloom);

    if (extra == NULL) {
        return bloom_odd_of(bloom) != NULL ? PLAN_ODD : 0;
    }
    return PLAN_EXTRA | (bloom_is_keyed(bloom) ? PLAN_KEYED : 0U) |
           (bloom_kind(bloom) == BLOOM_REDISBLOOM ? PLAN_LAYERS : 0U) |
           (extra->coverage != NULL ? PLAN_COVERAGE : 0U);
}

/* Returns whether the items of a layer may be so many. RedisBloom accepts any
 * number. */
static bool
is_filled_right(const struct bloom *bloom, const struct layer *layer)
{
    if (layer->kind == BLOOM_REDISBLOOM) {
        return true;
    }
    if (layer->kind == BLOOM_DELETABLE || layer->kind == BLOOM_AGEING) {
        return layer->items <= layer->capacity;
    }
    return layer != bloom_newest(bloom) ? layer->items == layer->capacity
                                        : layer->items <= layer->capacity;
}

void
bloom_check(const struct bloom *bloom)
{
    const struct layer *layers = bloom_layers_const(bloom);
    const struct bloom_extra *extra = bloom_extra_of(bloom);
    uint64_t capacity = 0;
    uint64_t items = 0;
    uint64_t line_bytes = 0;
    uint64_t size_bytes = 0;

    CHECK(bloom->count >= 1 && bloom->count <= BLOOM_LAYERS_MAX);
    CHECK(bloom_is_incomplete(bloom) ==
          (extra != NULL && extra->coverage != NULL));
    for (uint32_t i = 0; i < bloom->count; i++) {
        CHECK(layers[i].lines != NULL && layers[i].kind == bloom_kind(bloom) &&
              is_filled_right(bloom, &layers[i]));
        capacity += layers[i].capacity;
        items += layers[i].items;
        line_bytes += layer_bytes(&layers[i]);
    }
    CHECK(plan_size(bloom_parts(bloom), bloom->count, line_bytes, &size_bytes));
    if (bloom_kind(bloom) == BLOOM_DELETABLE) {
        CHECK(extra->older_items + bloom_newest(bloom)->items == items);
        items = bloom_items(bloom);
    }
    if (bloom_kind(bloom) == BLOOM_AGEING) {
        CHECK(bloom_newest(bloom)->age == 0);
        capacity = extra->capacity;
    }
    CHECK(bloom_capacity(bloom) == capacity && bloom_items(bloom) == items &&
          bloom_size(bloom) == size_bytes);
}

struct bloom_extra_layer *
bloom_extra_layers(const struct bloom *bloom)
{
    CHECK(bloom_kind(bloom) == BLOOM_REDISBLOOM);
    return bloom->count == 1
               ? &bloom->extra->first
               : (void *)&bloom->chain->layers[plan_slots(bloom->count)];
}

uint32_t
bloom_step(const struct bloom *bloom, uint32_t index)
{
    const struct layer *layers = bloom_layers_const(bloom);
    uint32_t step = 0;

    if (bloom_kind(bloom) != BLOOM_AGEING) {
        return index;
    }
    while (step < index && layers[index - step - 1].age == layers[index].age) {
        step++;
    }
    return step;
}

double
bloom_tightening(const struct bloom *bloom)
{
    const struct bloom_odd *odd = bloom_odd_of(bloom);

    return odd != NULL ? odd->tightening : BLOOM_USUAL_TIGHTENING;
}

void
bloom_get_seed(const struct bloom *bloom, uint8_t ret_seed[BLOOM_SEED_BYTES])
{
    const struct bloom_odd *odd = bloom_odd_of(bloom);

    if (odd != NULL) {
        memcpy(ret_seed, odd->seed, BLOOM_SEED_BYTES);
    } else {
        bloom_seed(bloom->seed64, ret_seed);
    }
}

static void
fill_odd(struct bloom_odd *odd, const struct bloom_params *params)
{
    odd->tightening = params->tightening;
    memcpy(odd->seed, params->seed, BLOOM_SEED_BYTES);
}

static void
free_extra(struct bloom_extra *extra, unsigned parts,
           const struct bloom_env *env)
{
    if (extra->coverage != NULL) {
        env->free(env->ctx, extra->coverage, sizeof(*extra->coverage));
    }
    env->free(env->ctx, extra, plan_extra_bytes(parts));
}

/* Fills in the additional fields of a keyed filter. */
static void
fill_keyed(struct bloom_keyed *keyed, const struct bloom_params *params)
{
    keyed->key = keyed_derive(params->fingerprint, params->seed);
    keyed->fingerprint = params->fingerprint;
}

/* Allocates a struct bloom_extra. NULL, and nothing to undo, without memory. */
static struct bloom_extra *
new_extra(const struct bloom_params *params, unsigned parts,
          const struct bloom_env *env)
{
    struct bloom_extra *extra = env->alloc(env->ctx, plan_extra_bytes(parts));

    if (extra == NULL) {
        return NULL;
    }
    *extra = (struct bloom_extra){
        .options = REDISBLOOM_NOROUND | REDISBLOOM_FORCE64 |
                   (params->expansion == 0 ? REDISBLOOM_NO_SCALING : 0U),
        .growth = params->expansion,
    };
    if (params->expansion == 0 && (params->flags & BLOOM_EXPANSION_ZERO) == 0) {
        extra->growth = NONSCALING_GROWTH;
    }
    if (params->kind == BLOOM_AGEING) {
        extra->seconds = params->seconds;
        extra->generations = params->generations;
        extra->capacity = params->capacity;
        extra->turn =
            turns_at(params->seconds, params->generations, params->now_ms);
    }
    fill_odd(&extra->odd, params);
    if ((parts & PLAN_KEYED) != 0) {
        fill_keyed((struct bloom_keyed *)extra, params);
    }
    if ((parts & PLAN_COVERAGE) != 0) {
        extra->coverage = env->alloc(env->ctx, sizeof(*extra->coverage));
        if (extra->coverage == NULL) {
            free_extra(extra, parts, env);
            return NULL;
        }
        extra->coverage->count = 0;
    }
    return extra;
}

bool
bloom_set_params(struct bloom *bloom, const struct bloom_params *params,
                 unsigned parts, const struct bloom_env *env)
{
    bool keyed = (parts & PLAN_KEYED) != 0;

    CHECK(params->kind < BLOOM_KINDS);
    *bloom = (struct bloom){
        .seed64 = seed_hash(params->seed),
        .count = 1,
        .traits =
            (uint8_t)((unsigned)params->kind |
                      (keyed ? BLOOM_TRAIT_KEYED : 0U) |
                      ((parts & PLAN_COVERAGE) != 0 ? BLOOM_INCOMPLETE : 0U)),
        .short_below =
            keyed || foreign_is(params->kind) ? 0 : BLOOM_SHORT_BELOW,
        .expansion = params->expansion,
        .error_rate = params->error_rate,
    };
    if ((parts & PLAN_EXTRA) != 0) {
        bloom->extra = new_extra(params, parts, env);
        return bloom->extra != NULL;
    }
    if ((parts & PLAN_ODD) != 0) {
        bloom->odd = env->alloc(env->ctx, sizeof(*bloom->odd));
        if (bloom->odd == NULL) {
            return false;
        }
        fill_odd(bloom->odd, params);
    }
    return true;
}

bool
bloom_complete(struct bloom *bloom, const struct bloom_env *env)
{
    struct bloom_extra *extra = bloom_extra_of(bloom);
    uint64_t structs = plan_struct_bytes(bloom_parts(bloom), bloom->count);
    struct bloom_odd *odd = NULL;
    struct bloom_params params = { .struct_size = sizeof(params) };

    CHECK(bloom_is_incomplete(bloom));
    env = env_or_default(env);
    bloom_get_params(bloom, &params);
    if (plan_parts(&params) == PLAN_ODD) {
        odd = env->alloc(env->ctx, sizeof(*odd));
        if (odd == NULL) {
            return false;
        }
        fill_odd(odd, &params);
    }
    bloom->traits &= (uint8_t)~BLOOM_INCOMPLETE;
    if (bloom->traits == 0) {
        free_extra(extra, 0, env);
        set_odd(bloom, odd);
    } else {
        env->free(env->ctx, extra->coverage, sizeof(*extra->coverage));
        extra->coverage = NULL;
    }
    if (bloom->count > 1) {
        bloom->chain->size_bytes -=
            structs - plan_struct_bytes(bloom_parts(bloom), bloom->count);
    }
    bloom_check(bloom);
    return true;
}

struct bloom_chain *
bloom_chain_new(const struct bloom *bloom, uint32_t count,
                const struct bloom_env *env)
{
    struct bloom_chain *chain =
        env->alloc(env->ctx, plan_chain_bytes(bloom_parts(bloom), count));

    CHECK(count > 1 && count >= bloom->count && count <= BLOOM_LAYERS_MAX);
    if (chain != NULL) {
        chain->odd = bloom_odd_of(bloom);
        chain->capacity = bloom_capacity(bloom);
        chain->size_bytes = bloom_size(bloom);
        memcpy(chain->layers, bloom_layers_const(bloom),
               bloom->count * sizeof(*chain->layers));
        if (bloom_kind(bloom) == BLOOM_REDISBLOOM) {
            memcpy(&chain->layers[plan_slots(count)], bloom_extra_layers(bloom),
                   bloom->count * sizeof(struct bloom_extra_layer));
        }
    }
    return chain;
}

void
bloom_chain_free(const struct bloom *bloom, struct bloom_chain *chain,
                 uint32_t count, const struct bloom_env *env)
{
    env->free(env->ctx, chain, plan_chain_bytes(bloom_parts(bloom), count));
}

void
bloom_set_chain(struct bloom *bloom, struct bloom_chain *chain, uint32_t count,
                const struct bloom_env *env)
{
    CHECK(chain != NULL && count > bloom->count);
    if (bloom->count > 1 && bloom->chain != chain) {
        bloom_chain_free(bloom, bloom->chain, bloom->count, env);
    }
    bloom->chain = chain;
    bloom->count = (uint16_t)count;
}

static size_t
pieces_bytes(uint64_t count)
{
    return sizeof(struct bloom_pieces) + (size_t)count * sizeof(uint64_t);
}

void
bloom_set_pieces(struct bloom *bloom, struct bloom_pieces *pieces,
                 const struct bloom_env *env)
{
    struct bloom_extra *extra = bloom_extra_of(bloom);

    if (bloom_kind(bloom) != BLOOM_DELETABLE || extra == NULL) {
        return;
    }
    if (extra->pieces != NULL) {
        env->free(env->ctx, extra->pieces, pieces_bytes(extra->pieces->count));
    }
    extra->pieces = pieces;
}

struct bloom_pieces *
bloom_new_pieces(uint64_t count, const struct bloom_env *env)
{
    struct bloom_pieces *pieces = NULL;

    if (count < SIZE_MAX / sizeof(uint64_t) / 2) {
        pieces = env->alloc(env->ctx, pieces_bytes(count));
    }
    if (pieces != NULL) {
        *pieces = (struct bloom_pieces){ .count = count };
    }
    return pieces;
}

/* Frees the chain first, since its length is computed from the other parts. */
void
bloom_free_structs(struct bloom *bloom, const struct bloom_env *env)
{
    struct bloom_odd *odd = bloom_odd_of(bloom);
    struct bloom_extra *extra = bloom_extra_of(bloom);
    unsigned parts = bloom_parts(bloom);

    bloom_set_pieces(bloom, NULL, env);
    if (bloom->count > 1) {
        bloom_chain_free(bloom, bloom->chain, bloom->count, env);
    }
    if (extra != NULL) {
        free_extra(extra, parts, env);
    } else if (odd != NULL) {
        env->free(env->ctx, odd, sizeof(*odd));
    }
}

void
bloom_fini(struct bloom *bloom, const struct bloom_env *env)
{
    struct layer *layers = bloom_layers(bloom);

    env = env_or_default(env);
    for (uint32_t i = 0; i < bloom->count; i++) {
        layer_fini(&layers[i], env);
    }
    bloom_free_structs(bloom, env);
}

enum bloom_status
bloom_keep(struct bloom *made, const struct bloom_env *env,
           struct bloom **ret_bloom)
{
    struct bloom *bloom;

    env = env_or_default(env);
    bloom = env->alloc(env->ctx, sizeof(*bloom));
    if (bloom == NULL) {
        bloom_fini(made, env);
        return BLOOM_NOMEM;
    }
    *bloom = *made;
    *ret_bloom = bloom;
    return BLOOM_OK;
}

uint64_t
bloom_items(const struct bloom *bloom)
{
    const struct layer *newest = bloom_newest(bloom);

    if (bloom_kind(bloom) != BLOOM_NATIVE) {
        const struct bloom_extra *extra = bloom_extra_of(bloom);
        uint64_t items = extra->older_items + newest->items;

        if (bloom_kind(bloom) != BLOOM_DELETABLE) {
            return items;
        }
        return items > extra->undone ? items - extra->undone : 0;
    }
    return bloom_capacity(bloom) - newest->capacity + newest->items;
}

uint64_t
bloom_size(const struct bloom *bloom)
{
    return bloom->count > 1 ? bloom->chain->size_bytes
                            : plan_struct_bytes(bloom_parts(bloom), 1) +
                                  layer_bytes(&bloom->first);
}

void
bloom_get_params(const struct bloom *bloom, struct bloom_params *ret_params)
{
    const struct layer *first = bloom_layers_const(bloom);
    const struct bloom_extra *extra = bloom_extra_of(bloom);
    struct bloom_params params = { .capacity = first->capacity,
                                   .error_rate = bloom->error_rate,
                                   .tightening = bloom_tightening(bloom),
                                   .expansion = bloom->expansion,
                                   .kind = bloom_kind(bloom),
                                   .stripes = first->stripes,
                                   .lines = first->line_count };

    if (params.kind == BLOOM_REDISBLOOM && params.expansion == 0 &&
        extra != NULL && extra->growth == 0) {
        params.flags = BLOOM_EXPANSION_ZERO;
    }
    if (params.kind == BLOOM_AGEING) {
        params.capacity = extra->capacity;
        params.seconds = extra->seconds;
        params.generations = extra->generations;
        params.now_ms =
            turns_begin_ms(extra->seconds, extra->generations, extra->turn);
    }
    if (params.kind == BLOOM_DELETABLE) {
        params.region = 1U << first->log2;
    }
    if (bloom_is_keyed(bloom)) {
        params.flags = BLOOM_KEYED;
        params.fingerprint = bloom_keyed_of(bloom)->fingerprint;
    }
    bloom_get_seed(bloom, params.seed);
    versioned_write(ret_params, &params, sizeof(params), BLOOM_LEAST_PARAMS);
}
