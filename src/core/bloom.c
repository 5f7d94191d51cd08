/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The filter: a chain of layers that grows at its newest end. Owned by the
 * caller, who serialises writers. Invariants: every layer but the newest is
 * full, so the number of items needs no sum; size_bytes is what
 * bloom_chain_bytes() says, so that what a limit allows, what bloom_project()
 * foretells and what bloom_size() reports are one figure.
 */
#include "core/bloom.h"

#include <float.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/env.h"
#include "core/sizing.h"

enum { PREFETCH_OLDER = 5, SHORT_ITEM = 16, NEAR_BYTES = 256 * 1024 };

/* For bloom_together(). */
enum {
    MANY_LAYERS = 16,
    PAGE_BYTES = 2 * 1024 * 1024, /* that the system clears at once */
    NEARLY_ALL = 8
};

#define NOINLINE __attribute__((noinline))

/* How far a chain has grown, and the layer that would come next. */
struct chain {
    uint64_t line_bytes; /* all layers */
    uint64_t capacity;   /* newest layer */
    uint32_t count;
};

struct next_layer {
    struct geometry geometry;
    uint64_t capacity;
    uint64_t line_bytes;
    uint64_t size_bytes; /* of the whole filter with it */
};

uint32_t
bloom_slots_for(uint32_t count)
{
    uint32_t slots = 2;

    if (count <= 1) {
        return 0;
    }
    while (slots < count) {
        slots *= 2;
    }
    return slots;
}

bool
bloom_chain_bytes(uint32_t count, uint64_t line_bytes, uint64_t limit_bytes,
                  uint64_t *ret_bytes)
{
    uint64_t structs =
        sizeof(struct bloom) + bloom_slots_for(count) * sizeof(struct layer);
    uint64_t most = limit_bytes < INT64_MAX ? limit_bytes : INT64_MAX;

    if (structs > most || line_bytes > most - structs) {
        return false;
    }
    *ret_bytes = structs + line_bytes;
    return true;
}

static bool
in_open_unit(double value)
{
    return value > 0 && value < 1; /* false for NaN */
}

bool
bloom_params_valid(const struct bloom_params *params)
{
    return params->capacity >= 1 && params->capacity <= BLOOM_CAPACITY_MAX &&
           in_open_unit(params->error_rate) && in_open_unit(params->tightening);
}

/* The geometry of layer 0: the stored one if there is one. */
static bool
first_geometry(const struct bloom_params *params, struct geometry *ret_geometry)
{
    struct geometry geometry;

    if (params->stripes == 0 && params->lines == 0) {
        *ret_geometry = sizing_geometry(params->capacity, params->error_rate);
        return true;
    }
    geometry.stripes = params->stripes;
    geometry.lines = params->lines;
    if (!sizing_acceptable(params->capacity, params->error_rate, geometry)) {
        return false;
    }
    *ret_geometry = geometry;
    return true;
}

/* The one place where sizes meet limits. Checks in the order in which a
 * client is told; on failure *ret_next is untouched. */
static enum bloom_status
plan_next(const struct bloom_params *params, const struct chain *chain,
          uint64_t limit_bytes, struct next_layer *ret_next)
{
    struct next_layer next = { .capacity = params->capacity };
    double rate;

    if (chain->count == 0) {
        if (!first_geometry(params, &next.geometry)) {
            return BLOOM_INVALID;
        }
    } else {
        if (params->expansion == 0) {
            return BLOOM_FULL;
        }
        if (chain->count >= BLOOM_LAYERS_MAX) {
            return BLOOM_MAX_LAYERS;
        }
        rate = sizing_layer_rate(params->error_rate, params->tightening,
                                 chain->count);
        if (rate <= DBL_MIN) {
            return BLOOM_RATE_ZERO;
        }
        if (chain->capacity > BLOOM_CAPACITY_MAX / params->expansion) {
            return BLOOM_OVERFLOW;
        }
        next.capacity = chain->capacity * params->expansion;
        next.geometry = sizing_geometry(next.capacity, rate);
    }
    if (!sizing_bytes(next.geometry, &next.line_bytes) ||
        !bloom_chain_bytes(chain->count + 1,
                           chain->line_bytes + next.line_bytes, limit_bytes,
                           &next.size_bytes)) {
        return BLOOM_LIMIT;
    }
    *ret_next = next;
    return BLOOM_OK;
}

const char *
bloom_select_cpu(bool force_portable)
{
    return layer_select_cpu(force_portable);
}

enum bloom_status
bloom_new(const struct bloom_params *params, const struct bloom_env *env,
          struct bloom **ret_bloom)
{
    const struct chain none = { 0 };
    struct next_layer next;
    struct bloom *bloom;
    enum bloom_status status;

    env = env_or_default(env);
    if (!bloom_params_valid(params)) {
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
    *bloom =
        (struct bloom){ .layers = &bloom->first,
                        .count = 1,
                        .expansion = params->expansion,
                        .seed64 = XXH3_64bits(params->seed, BLOOM_SEED_BYTES),
                        .capacity = next.capacity,
                        .size_bytes = next.size_bytes,
                        .error_rate = params->error_rate,
                        .tightening = params->tightening };
    memcpy(bloom->seed, params->seed, BLOOM_SEED_BYTES);
    if (!layer_init(&bloom->first, next.capacity, next.geometry, env)) {
        env->free(env->ctx, bloom, sizeof(*bloom));
        return BLOOM_NOMEM;
    }
    *ret_bloom = bloom;
    return BLOOM_OK;
}

static void
free_array(struct bloom *bloom, const struct bloom_env *env)
{
    if (bloom->layers != &bloom->first) {
        env->free(env->ctx, bloom->layers,
                  bloom_slots_for(bloom->count) * sizeof(struct layer));
    }
}

void
bloom_free(struct bloom *bloom, const struct bloom_env *env)
{
    if (bloom == NULL) {
        return;
    }
    env = env_or_default(env);
    for (uint32_t i = 0; i < bloom->count; i++) {
        layer_fini(&bloom->layers[i], env);
    }
    free_array(bloom, env);
    env->free(env->ctx, bloom, sizeof(*bloom));
}

void
bloom_reset(struct bloom *bloom, const struct bloom_env *env)
{
    struct layer first = bloom->layers[0];

    env = env_or_default(env);
    for (uint32_t i = 1; i < bloom->count; i++) {
        layer_fini(&bloom->layers[i], env);
    }
    free_array(bloom, env);
    memset(first.lines, 0, (size_t)layer_bytes(&first));
    first.items = 0;
    bloom->first = first;
    bloom->layers = &bloom->first;
    bloom->count = 1;
    bloom->capacity = first.capacity;
    bloom->size_bytes = sizeof(*bloom) + layer_bytes(&first);
}

/* Appends one empty layer, or leaves the filter as it is. */
static enum bloom_status
grow(struct bloom *bloom, const struct bloom_env *env)
{
    uint32_t slots = bloom_slots_for(bloom->count + 1);
    struct layer *layers = bloom->layers;
    struct bloom_params params;
    struct next_layer next;
    struct layer layer;
    struct chain chain;
    enum bloom_status status;

    env = env_or_default(env);
    bloom_get_params(bloom, &params);
    chain.count = bloom->count;
    chain.capacity = layers[bloom->count - 1].capacity;
    chain.line_bytes = bloom->size_bytes - sizeof(*bloom) -
                       bloom_slots_for(bloom->count) * sizeof(*layers);
    status = plan_next(&params, &chain, env->size_limit_bytes, &next);
    if (status != BLOOM_OK) {
        return status;
    }
    if (slots != bloom_slots_for(bloom->count)) {
        layers = env->alloc(env->ctx, slots * sizeof(*layers));
        if (layers == NULL) {
            return BLOOM_NOMEM;
        }
        memcpy(layers, bloom->layers, bloom->count * sizeof(*layers));
    }
    if (!layer_init(&layer, next.capacity, next.geometry, env)) {
        goto fail_layers;
    }
    if (layers != bloom->layers) {
        free_array(bloom, env);
        bloom->layers = layers;
    }
    layers[bloom->count] = layer;
    bloom->count++;
    bloom->capacity += next.capacity;
    bloom->size_bytes = next.size_bytes;
    return BLOOM_OK;

fail_layers:
    if (layers != bloom->layers) {
        env->free(env->ctx, layers, slots * sizeof(*layers));
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
    const struct layer *layer = &bloom->layers[bloom->count - 1];
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
    return bloom->size_bytes <= NEAR_BYTES;
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
        if (layer_contains(&bloom->layers[i], hash)) {
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
    struct layer *newest = &bloom->layers[bloom->count - 1];
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
        newest = &bloom->layers[bloom->count - 1];
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
    const struct layer *newest = &bloom->layers[bloom->count - 1];
    uint64_t left = newest->capacity - newest->items;
    size_t together = BLOOM_BATCH_MAX;

    if (bloom->count > MANY_LAYERS) {
        together = BLOOM_BATCH_MAX * MANY_LAYERS / bloom->count;
    }
    if (bloom->size_bytes >= PAGE_BYTES && is_fresh(newest)) {
        return 1;
    }
    /* What comes behind the last item of this layer meets a fresh one. */
    if (left < together &&
        bloom->size_bytes >= PAGE_BYTES / (bloom->expansion | 1)) {
        together = (size_t)left;
    }
    return together > 0 ? together : 1;
}

void
bloom_get_info(const struct bloom *bloom, struct bloom_info *ret_info)
{
    *ret_info = (struct bloom_info){ .capacity = bloom->capacity,
                                     .items = bloom_items(bloom),
                                     .size = bloom->size_bytes,
                                     .layers = bloom->count };
}

uint64_t
bloom_items(const struct bloom *bloom)
{
    const struct layer *newest = &bloom->layers[bloom->count - 1];

    return bloom->capacity - newest->capacity + newest->items;
}

uint64_t
bloom_size(const struct bloom *bloom)
{
    return bloom->size_bytes;
}

void
bloom_get_params(const struct bloom *bloom, struct bloom_params *ret_params)
{
    const struct layer *first = &bloom->layers[0];

    *ret_params = (struct bloom_params){ .capacity = first->capacity,
                                         .error_rate = bloom->error_rate,
                                         .tightening = bloom->tightening,
                                         .expansion = bloom->expansion,
                                         .stripes = first->stripes,
                                         .lines = first->line_count };
    memcpy(ret_params->seed, bloom->seed, BLOOM_SEED_BYTES);
}

enum bloom_status
bloom_project(const struct bloom_params *params, uint64_t size_limit_bytes,
              uint64_t target, uint64_t *ret_total)
{
    enum bloom_status status = BLOOM_OK;
    struct chain chain = { 0 };
    struct next_layer next;
    uint64_t total = 0;

    if (!bloom_params_valid(params)) {
        return BLOOM_INVALID;
    }
    while (target == 0 || total < target) {
        status = plan_next(params, &chain, size_limit_bytes, &next);
        if (status != BLOOM_OK) {
            break;
        }
        total = next.capacity < BLOOM_CAPACITY_MAX - total
                    ? total + next.capacity
                    : BLOOM_CAPACITY_MAX;
        chain.count++;
        chain.capacity = next.capacity;
        chain.line_bytes += next.line_bytes;
    }
    if (target == 0 && status != BLOOM_OVERFLOW && status != BLOOM_INVALID) {
        status = BLOOM_OK;
    }
    if (status == BLOOM_OK && ret_total != NULL) {
        *ret_total = total;
    }
    return status;
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
    layer = &bloom->layers[index];
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
    if (index >= bloom->count) {
        return NULL;
    }
    *ret_bytes = (size_t)layer_bytes(&bloom->layers[index]);
    return bloom->layers[index].lines;
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
