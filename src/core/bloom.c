/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The filter: a chain of layers that grows at its newest end. Owned by the
 * caller, who serialises writers. Invariants: every layer but the newest is
 * full, so the number of items needs no sum; bloom_size() is what
 * plan_size() says, so that what a limit allows, what bloom_project()
 * foretells and what is reported are one figure.
 */
#include "core/bloom.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/env.h"
#include "core/plan.h"
#include "core/seed.h"
#include "core/sizing.h"

enum { PREFETCH_OLDER = 5, SHORT_ITEM = 16, NEAR_BYTES = 256 * 1024 };

/* For bloom_together(). */
enum {
    MANY_LAYERS = 8,
    PAGE_BYTES = 2 * 1024 * 1024, /* that the system clears at once */
    NEARLY_ALL = 8
};

#define NOINLINE __attribute__((noinline))

static const struct layer *
newest_of(const struct bloom *bloom)
{
    return &bloom_layers_const(bloom)[bloom->count - 1];
}

/* Of all layers. */
static uint64_t
capacity_of(const struct bloom *bloom)
{
    return bloom->count > 1 ? bloom->chain->capacity : bloom->first.capacity;
}

static struct bloom_odd *
odd_of(const struct bloom *bloom)
{
    return bloom->count == 1 ? bloom->odd : bloom->chain->odd;
}

double
bloom_tightening(const struct bloom *bloom)
{
    const struct bloom_odd *odd = odd_of(bloom);

    return odd != NULL ? odd->tightening : BLOOM_USUAL_TIGHTENING;
}

void
bloom_get_seed(const struct bloom *bloom, uint8_t ret_seed[BLOOM_SEED_BYTES])
{
    const struct bloom_odd *odd = odd_of(bloom);

    if (odd != NULL) {
        memcpy(ret_seed, odd->seed, BLOOM_SEED_BYTES);
    } else {
        bloom_seed(bloom->seed64, ret_seed);
    }
}

const char *
bloom_select_cpu(bool force_portable)
{
    return layer_select_cpu(force_portable);
}

bool
bloom_set_params(struct bloom *bloom, const struct bloom_params *params,
                 bool odd, const struct bloom_env *env)
{
    *bloom = (struct bloom){ .seed64 = seed_hash(params->seed),
                             .count = 1,
                             .expansion = params->expansion,
                             .error_rate = params->error_rate };
    if (!odd) {
        return true;
    }
    bloom->odd = env->alloc(env->ctx, sizeof(*bloom->odd));
    if (bloom->odd == NULL) {
        return false;
    }
    bloom->odd->tightening = params->tightening;
    memcpy(bloom->odd->seed, params->seed, BLOOM_SEED_BYTES);
    return true;
}

enum bloom_status
bloom_new(const struct bloom_params *params, const struct bloom_env *env,
          struct bloom **ret_bloom)
{
    const struct plan none = { .odd = plan_is_odd(params) };
    struct plan_layer next;
    struct bloom *bloom;
    enum bloom_status status;

    env = env_or_default(env);
    if (!plan_is_valid(params)) {
        return BLOOM_INVALID;
    }
    status = plan_next(params, &none, env->size_limit_bytes, &next);
    if (status != BLOOM_OK) {
        return status;
    }
    bloom = env->alloc(env->ctx, sizeof(*bloom));
    if (bloom == NULL) {
        return BLOOM_NOMEM;
    }
    if (!bloom_set_params(bloom, params, none.odd, env)) {
        goto fail_bloom;
    }
    if (!layer_init(&bloom->first, next.capacity, next.geometry, env)) {
        goto fail_odd;
    }
    *ret_bloom = bloom;
    return BLOOM_OK;

fail_odd:
    bloom_free_structs(bloom, env);
fail_bloom:
    env->free(env->ctx, bloom, sizeof(*bloom));
    return BLOOM_NOMEM;
}

struct bloom_chain *
bloom_chain_new(const struct bloom *bloom, uint32_t count,
                const struct bloom_env *env)
{
    struct bloom_chain *chain = env->alloc(env->ctx, plan_chain_bytes(count));

    if (chain != NULL) {
        chain->odd = odd_of(bloom);
        chain->capacity = capacity_of(bloom);
        chain->size_bytes = bloom_size(bloom);
        memcpy(chain->layers, bloom_layers_const(bloom),
               bloom->count * sizeof(*chain->layers));
    }
    return chain;
}

void
bloom_chain_free(struct bloom_chain *chain, uint32_t count,
                 const struct bloom_env *env)
{
    env->free(env->ctx, chain, plan_chain_bytes(count));
}

void
bloom_set_chain(struct bloom *bloom, struct bloom_chain *chain, uint32_t count,
                const struct bloom_env *env)
{
    if (bloom->count > 1 && bloom->chain != chain) {
        bloom_chain_free(bloom->chain, bloom->count, env);
    }
    bloom->chain = chain;
    bloom->count = count;
}

void
bloom_free_structs(struct bloom *bloom, const struct bloom_env *env)
{
    struct bloom_odd *odd = odd_of(bloom);

    if (odd != NULL) {
        env->free(env->ctx, odd, sizeof(*odd));
    }
    if (bloom->count > 1) {
        bloom_chain_free(bloom->chain, bloom->count, env);
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

void
bloom_free(struct bloom *bloom, const struct bloom_env *env)
{
    if (bloom == NULL) {
        return;
    }
    env = env_or_default(env);
    bloom_fini(bloom, env);
    env->free(env->ctx, bloom, sizeof(*bloom));
}

void
bloom_reset(struct bloom *bloom, const struct bloom_env *env)
{
    struct layer *layers = bloom_layers(bloom);
    struct bloom_odd *odd = odd_of(bloom);

    env = env_or_default(env);
    memset(layers[0].lines, 0, (size_t)layer_bytes(&layers[0]));
    layers[0].items = 0;
    for (uint32_t i = 1; i < bloom->count; i++) {
        layer_fini(&layers[i], env);
    }
    bloom->first = layers[0];
    if (bloom->count > 1) {
        bloom_chain_free(bloom->chain, bloom->count, env);
    }
    bloom->odd = odd;
    bloom->count = 1;
}

/* Appends one empty layer, or leaves the filter as it is. */
static enum bloom_status
grow(struct bloom *bloom, const struct bloom_env *env)
{
    uint32_t count = bloom->count + 1;
    bool fits = plan_slots(count) == plan_slots(bloom->count);
    struct bloom_chain *chain = bloom->chain;
    struct bloom_params params;
    struct plan_layer next;
    struct layer layer;
    struct plan grown;
    enum bloom_status status;

    env = env_or_default(env);
    bloom_get_params(bloom, &params);
    grown.odd = odd_of(bloom) != NULL;
    grown.count = bloom->count;
    grown.capacity = newest_of(bloom)->capacity;
    grown.line_bytes =
        bloom_size(bloom) - plan_struct_bytes(grown.odd, bloom->count);
    grown.module_bytes = 0;
    if (params.expansion > 0 && env->size_limit_bytes < INT64_MAX) {
        grown.module_bytes = plan_module_layers(&params, bloom->count);
    }
    grown.foretold = false;
    status = plan_next(&params, &grown, env->size_limit_bytes, &next);
    if (status != BLOOM_OK) {
        return status;
    }
    if (!fits) {
        chain = bloom_chain_new(bloom, count, env);
        if (chain == NULL) {
            return BLOOM_NOMEM;
        }
    }
    if (!layer_init(&layer, next.capacity, next.geometry, env)) {
        goto fail_chain;
    }
    chain->layers[bloom->count] = layer;
    chain->capacity += next.capacity;
    chain->size_bytes = next.size_bytes;
    bloom_set_chain(bloom, chain, count, env);
    return BLOOM_OK;

fail_chain:
    if (!fits) {
        bloom_chain_free(chain, count, env);
    }
    return BLOOM_NOMEM;
}

/* ---- the hot path: filters of one layer and short items come first, without
 * a stack frame; the rest is called from there. --------------------------- */

NOINLINE static struct bloom_hash
hash_long(const struct bloom *bloom, const void *item, size_t len)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(item, len, bloom->seed64);

    return (struct bloom_hash){ .high = hash.high64, .low = hash.low64 };
}

/* Flattened, so that of the hash only its branch for short items is here. */
__attribute__((flatten)) struct bloom_hash
bloom_hash(const struct bloom *bloom, const void *item, size_t len)
{
    XXH128_hash_t hash;

    if (len > SHORT_ITEM) {
        return hash_long(bloom, item, len);
    }
    hash = XXH3_128bits_withSeed(item, len, bloom->seed64);
    return (struct bloom_hash){ .high = hash.high64, .low = hash.low64 };
}

/* All of the newest layer, where an add writes and half of all hits end; of
 * the older ones the line that a miss reads. Beyond a handful the fetches
 * would only queue up. */
NOINLINE static void
prefetch_chain(const struct bloom *bloom, struct bloom_hash hash)
{
    const struct layer *layer = &bloom->chain->layers[bloom->count - 1];
    uint32_t older = bloom->count - 1;

    layer_prefetch(layer, hash, layer->stripes);
    if (older > PREFETCH_OLDER) {
        older = PREFETCH_OLDER;
    }
    while (older-- > 0) {
        layer_prefetch(--layer, hash, 1);
    }
}

/* Near enough to the core, in its second-level cache once it is used at all,
 * for the CPU to overlap the fetches by itself: asking costs more. */
static bool
is_near(const struct bloom *bloom)
{
    if (bloom->count > 1) {
        return bloom->chain->size_bytes <= NEAR_BYTES;
    }
    return bloom->first.line_count * bloom->first.stripes <=
           NEAR_BYTES / BLOOM_LINE_BYTES;
}

void
bloom_prefetch_batch(const struct bloom *bloom, const struct bloom_hash *hashes,
                     size_t count)
{
    if (is_near(bloom)) {
        return;
    }
    if (bloom->count > 1) {
        for (size_t i = 0; i < count; i++) {
            prefetch_chain(bloom, hashes[i]);
        }
    } else {
        layer_ops_of(&bloom->first)
            ->prefetch_many(&bloom->first, hashes, count, bloom->first.stripes);
    }
}

/* Newest to oldest: at an expansion of 2 half of all items are in the newest
 * layer, and each older one has half of the rest. */
NOINLINE static bool
chain_contains(const struct bloom *bloom, struct bloom_hash hash)
{
    for (uint32_t i = bloom->count; i-- > 0;) {
        if (layer_contains(&bloom->chain->layers[i], hash)) {
            return true;
        }
    }
    return false;
}

bool
bloom_contains(const struct bloom *bloom, struct bloom_hash hash)
{
    if (bloom->count > 1) {
        return chain_contains(bloom, hash);
    }
    return layer_contains(&bloom->first, hash);
}

void
bloom_contains_batch(const struct bloom *bloom, const struct bloom_hash *hashes,
                     size_t count, bool *ret_found)
{
    if (bloom->count == 1) {
        layer_ops_of(&bloom->first)
            ->contains_many(&bloom->first, hashes, count, ret_found);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        ret_found[i] = chain_contains(bloom, hashes[i]);
    }
}

NOINLINE static enum bloom_status
chain_add(struct bloom *bloom, const struct bloom_env *env,
          struct bloom_hash hash, bool *ret_added)
{
    struct layer *newest = &bloom_layers(bloom)[bloom->count - 1];
    enum bloom_status status;

    if (bloom_contains(bloom, hash)) {
        *ret_added = false;
        return BLOOM_OK;
    }
    if (newest->items >= newest->capacity) {
        status = grow(bloom, env);
        if (status != BLOOM_OK) {
            return status;
        }
        newest = &bloom->chain->layers[bloom->count - 1];
    }
    (void)layer_add(newest, hash);
    newest->items++;
    *ret_added = true;
    return BLOOM_OK;
}

enum bloom_status
bloom_add(struct bloom *bloom, const struct bloom_env *env,
          struct bloom_hash hash, bool *ret_added)
{
    struct layer *first = &bloom->first;
    bool added;

    if (bloom->count > 1 || first->items >= first->capacity) {
        return chain_add(bloom, env, hash, ret_added);
    }
    added = layer_add(first, hash); /* tests and sets in one pass */
    first->items += added;
    *ret_added = added;
    return BLOOM_OK;
}

enum bloom_status
bloom_add_batch(struct bloom *bloom, const struct bloom_env *env,
                const struct bloom_hash *hashes, size_t count, bool *ret_added,
                size_t *ret_done)
{
    struct layer *first = &bloom->first;
    enum bloom_status status = BLOOM_OK;
    size_t done = 0;

    /* While all that is left fits the only layer, nothing can stop it. */
    if (bloom->count == 1 && first->capacity - first->items >= count) {
        first->items +=
            layer_ops_of(first)->add_many(first, hashes, count, ret_added);
        done = count;
    }
    while (done < count && status == BLOOM_OK) {
        status = bloom_add(bloom, env, hashes[done], &ret_added[done]);
        done += status == BLOOM_OK;
    }
    *ret_done = done;
    return status;
}

/* Items fall on pages at random: nearly all have been touched once there were
 * NEARLY_ALL as many touches as pages. */
static bool
is_fresh(const struct layer *layer)
{
    uint64_t bytes = layer->line_count * layer->stripes * BLOOM_LINE_BYTES;
    uint64_t pages = (bytes + PAGE_BYTES - 1) / PAGE_BYTES;

    return bytes >= PAGE_BYTES &&
           layer->items * layer->stripes < NEARLY_ALL * pages;
}

size_t
bloom_together(const struct bloom *bloom)
{
    const struct layer *newest = newest_of(bloom);
    uint64_t left = newest->capacity - newest->items;
    uint64_t size_bytes = bloom_size(bloom);
    size_t together = BLOOM_BATCH_MAX;

    if (bloom->count > MANY_LAYERS) {
        together = BLOOM_BATCH_MAX * MANY_LAYERS / bloom->count;
    }
    if (size_bytes >= PAGE_BYTES && is_fresh(newest)) {
        return 1;
    }
    /* What comes behind the last item of this layer meets a fresh one. */
    if (left < together && size_bytes >= PAGE_BYTES / (bloom->expansion | 1)) {
        together = (size_t)left;
    }
    return together > 0 ? together : 1;
}

void
bloom_get_info(const struct bloom *bloom, struct bloom_info *ret_info)
{
    *ret_info = (struct bloom_info){ .capacity = capacity_of(bloom),
                                     .items = bloom_items(bloom),
                                     .size = bloom_size(bloom),
                                     .layers = bloom->count };
}

uint64_t
bloom_items(const struct bloom *bloom)
{
    const struct layer *newest = newest_of(bloom);

    return capacity_of(bloom) - newest->capacity + newest->items;
}

uint64_t
bloom_size(const struct bloom *bloom)
{
    return bloom->count > 1 ? bloom->chain->size_bytes
                            : plan_struct_bytes(bloom->odd != NULL, 1) +
                                  layer_bytes(&bloom->first);
}

uint64_t
bloom_growth_bytes(const struct bloom *bloom)
{
    return layer_bytes(newest_of(bloom)) + plan_chain_bytes(bloom->count) -
           plan_chain_bytes(bloom->count - 1);
}

void
bloom_get_params(const struct bloom *bloom, struct bloom_params *ret_params)
{
    const struct layer *first = bloom_layers_const(bloom);

    *ret_params = (struct bloom_params){ .capacity = first->capacity,
                                         .error_rate = bloom->error_rate,
                                         .tightening = bloom_tightening(bloom),
                                         .expansion = bloom->expansion,
                                         .stripes = first->stripes,
                                         .lines = first->line_count };
    bloom_get_seed(bloom, ret_params->seed);
}

bool
bloom_get_layer(const struct bloom *bloom, uint32_t index,
                struct bloom_layer_info *ret_layer)
{
    const struct layer *layer;
    struct geometry geometry;

    if (index >= bloom->count) {
        return false;
    }
    layer = &bloom_layers_const(bloom)[index];
    geometry.lines = layer->line_count;
    geometry.stripes = layer->stripes;
    *ret_layer = (struct bloom_layer_info){ .capacity = layer->capacity,
                                            .items = layer->items,
                                            .lines = layer->line_count,
                                            .stripes = layer->stripes,
                                            .error_rate = sizing_exact_rate(
                                                layer->capacity, geometry) };
    return true;
}

const void *
bloom_layer_lines(const struct bloom *bloom, uint32_t index, size_t *ret_bytes)
{
    const struct layer *layer;

    if (index >= bloom->count) {
        return NULL;
    }
    layer = &bloom_layers_const(bloom)[index];
    *ret_bytes = (size_t)layer_bytes(layer);
    return layer->lines;
}

const char *
bloom_status_text(enum bloom_status status)
{
    switch (status) {
    case BLOOM_OK:
        return "ok";
    case BLOOM_FULL:
        return "the filter is full and does not scale";
    case BLOOM_LIMIT:
        return "the filter would exceed its memory limit";
    case BLOOM_NOMEM:
        return "out of memory";
    case BLOOM_RATE_ZERO:
        return "the error rate of the next layer would be zero";
    case BLOOM_OVERFLOW:
        return "the capacity of the next layer is too large";
    case BLOOM_MAX_LAYERS:
        return "the filter has as many layers as there may be";
    case BLOOM_OVERFULL:
        return "the union holds more items than a layer's capacity";
    case BLOOM_INVALID:
        return "a parameter is out of range";
    case BLOOM_CORRUPT:
        return "the bytes are not an intact dump of a filter";
    case BLOOM_VERSION:
        return "the dump is of a version or kind that is not known here";
    }
    return "unknown status";
}
