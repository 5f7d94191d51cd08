/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The filter: a chain of layers that grows at its newest end. The caller owns
 * it and serialises writers. Every layer but the newest is full, so the number
 * of items needs no sum. bloom_size() is what plan_size() computes, so that
 * limits, bloom_project() and reports have the same figure.
 */
#include "core/bloom.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/err.h"
#include "core/env.h"
#include "core/plan.h"
#include "core/seed.h"
#include "core/sizing.h"

enum { PREFETCH_OLDER = 5, SHORT_ITEM = 16, NEAR_BYTES = 256 * 1024 };

/* For bloom_together(). */
enum {
    MANY_LAYERS = 8,
    PAGE_BYTES = 2 * 1024 * 1024, /* the kernel clears it at the first touch */
    NEARLY_ALL = 8
};

#define NOINLINE __attribute__((noinline))

static const struct layer *
newest_of(const struct bloom *bloom)
{
    return &bloom_layers_const(bloom)[bloom->count - 1];
}

/* Returns the capacity of all layers. */
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

void
bloom_check(const struct bloom *bloom)
{
    const struct layer *layers = bloom_layers_const(bloom);
    uint64_t capacity = 0;
    uint64_t line_bytes = 0;
    uint64_t size_bytes = 0;

    CHECK(bloom->count >= 1 && bloom->count <= BLOOM_LAYERS_MAX);
    for (uint32_t i = 0; i < bloom->count; i++) {
        CHECK(layers[i].lines != NULL && layers[i].capacity > 0);
        CHECK(i + 1 < bloom->count ? layers[i].items == layers[i].capacity
                                   : layers[i].items <= layers[i].capacity);
        capacity += layers[i].capacity;
        line_bytes += layer_bytes(&layers[i]);
    }
    CHECK(plan_size(odd_of(bloom) != NULL, bloom->count, line_bytes,
                    &size_bytes));
    CHECK(capacity_of(bloom) == capacity && bloom_size(bloom) == size_bytes);
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
    CHECK(plan_is_valid(params));
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
    const struct plan none = { .parts = plan_parts(params) };
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
    if (!bloom_set_params(bloom, params, none.parts != 0, env)) {
        goto fail_bloom;
    }
    if (!layer_init(&bloom->first, BLOOM_NATIVE, next.capacity, next.geometry, env)) {
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
    struct bloom_chain *chain = env->alloc(env->ctx, plan_chain_bytes(0, count));

    CHECK(count > 1 && count >= bloom->count && count <= BLOOM_LAYERS_MAX);
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
    env->free(env->ctx, chain, plan_chain_bytes(0, count));
}

void
bloom_set_chain(struct bloom *bloom, struct bloom_chain *chain, uint32_t count,
                const struct bloom_env *env)
{
    CHECK(chain != NULL && count > bloom->count);
    if (bloom->count > 1 && bloom->chain != chain) {
        bloom_chain_free(bloom->chain, bloom->count, env);
    }
    bloom->chain = chain;
    bloom->count = (uint16_t)count;
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
    bloom_check(bloom);
}

/* Appends one empty layer to a full filter, or leaves it as it is. */
static enum bloom_status
grow(struct bloom *bloom, const struct bloom_env *env)
{
    uint32_t count = bloom->count + 1U;
    bool fits = plan_slots(count) == plan_slots(bloom->count);
    struct bloom_chain *chain = bloom->chain;
    struct bloom_params params;
    struct plan_layer next;
    struct layer layer;
    struct plan grown;
    enum bloom_status status;

    CHECK(newest_of(bloom)->items == newest_of(bloom)->capacity);
    env = env_or_default(env);
    bloom_get_params(bloom, &params);
    grown.parts = odd_of(bloom) != NULL ? PLAN_ODD : 0;
    grown.count = bloom->count;
    grown.capacity = newest_of(bloom)->capacity;
    grown.line_bytes =
        bloom_size(bloom) - plan_struct_bytes(grown.parts, bloom->count);
    grown.module_bytes = 0;
    if (params.expansion > 0 && env->size_limit_bytes < INT64_MAX) {
        grown.module_bytes = plan_module_layers(&params, bloom->count);
    }
    grown.projected = false;
    grown.rate = 0;
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
    if (!layer_init(&layer, BLOOM_NATIVE, next.capacity, next.geometry, env)) {
        goto fail_chain;
    }
    chain->layers[bloom->count] = layer;
    chain->capacity += next.capacity;
    chain->size_bytes = next.size_bytes;
    bloom_set_chain(bloom, chain, count, env);
    bloom_check(bloom);
    return BLOOM_OK;

fail_chain:
    if (!fits) {
        bloom_chain_free(chain, count, env);
    }
    return BLOOM_NOMEM;
}

/* ---- the hot path: filters of one layer and short items come first, without
 * a stack frame; other cases are calls from there. ------------------------- */

NOINLINE static struct bloom_hash
hash_long(const struct bloom *bloom, const void *item, size_t len)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(item, len, bloom->seed64);

    return (struct bloom_hash){ .high = hash.high64, .low = hash.low64 };
}

/* Flattened, so that it contains only the hash's branch for short items. */
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

/* Fetches all lines of the newest layer, where an add writes and half of all
 * hits end; and of a few older layers the line that a miss reads. More fetches
 * would only wait for each other. */
NOINLINE static void
prefetch_chain(const struct bloom *bloom, struct bloom_hash hash)
{
    const struct layer *layer = &bloom->chain->layers[bloom->count - 1];
    uint32_t older = bloom->count - 1U;

    layer_prefetch(layer, hash, layer->stripes);
    if (older > PREFETCH_OLDER) {
        older = PREFETCH_OLDER;
    }
    while (older-- > 0) {
        layer_prefetch(--layer, hash, 1);
    }
}

/* Returns whether the filter fits the second-level cache. Then the CPU overlaps
 * the reads by itself, and prefetching only costs. */
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

/* Asks the newest layer first: at an expansion of 2 it has half of all items,
 * and each older layer has half of the rest. */
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

    /* If all items fit the only layer, no add can fail. */
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

/* Returns whether most pages of a large layer are untouched. Items fall on
 * pages at random: after NEARLY_ALL touches a page nearly all pages are
 * touched. */
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
    /* The items after this layer's last one go to a new layer. */
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
                                     .size_bytes = bloom_size(bloom),
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
    return layer_bytes(newest_of(bloom)) + plan_chain_bytes(0, bloom->count) -
           plan_chain_bytes(0, bloom->count - 1);
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
