/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The filter: a chain of layers that grows at its newest end. The caller owns
 * it and serialises writers. A native filter's older layers are full, so their
 * items need no sum. bloom_size() is what plan_size() computes, so that limits,
 * plan_project() and reports have the same figure.
 */
#include "core/bloom.h"

#include <float.h>
#include <string.h>

#include "base/err.h"
#include "base/prefetch.h"
#include "core/env.h"
#include "core/foreign.h"
#include "core/keyed.h"
#include "core/parts.h"
#include "core/plan.h"
#include "core/seed.h"
#include "core/sizing.h"
#include "core/turns.h"
#include "core/versioned.h"

enum {
    PREFETCH_OLDER = 5,
    PREFETCH_AGED = 12, /* in kind ageing, a miss reads a line of each layer */
    NEAR_BYTES = 256 * 1024
};

/* Limits for bloom_together(). */
enum {
    MANY_LAYERS = 8,
    PAGE_BYTES = 2 * 1024 * 1024, /* the kernel clears it at the first touch */
    SMALL_PAGE_BYTES = 4096,
    NEARLY_ALL = 8,
    MOST = 2
};

/* The sizes of the structs in version 1 of the library: no caller has less. */
enum { LEAST_INFO = 40, LEAST_LAYER_INFO = 48 };

#define NOINLINE __attribute__((noinline))

const char *
bloom_select_cpu(bool force_portable)
{
    return layer_select_cpu(force_portable);
}

static void
set_extra_layer(struct bloom_extra_layer *layer, double rate)
{
    layer->rate = rate;
    layer->bits_per_item = redisbloom_bits_per_item(rate);
}

/* Checks the secret of a keyed filter; 0 stands for our own, set in a copy. */
static enum bloom_status
choose_secret(const struct bloom_params **params, struct bloom_params *copy)
{
    uint64_t own;

    if ((*params)->fingerprint != 0) {
        return keyed_is_known((*params)->fingerprint) ? BLOOM_OK : BLOOM_SECRET;
    }
    if (!keyed_fingerprint(&own)) {
        return BLOOM_SECRET;
    }
    *copy = **params;
    copy->fingerprint = own;
    *params = copy;
    return BLOOM_OK;
}

enum bloom_status
bloom_init(struct bloom *bloom, const struct bloom_params *params,
           const struct bloom_env *env)
{
    struct bloom_params copy;
    struct plan_layer next;
    unsigned parts;
    enum bloom_status status;

    env = env_or_default(env);
    if (params->struct_size != sizeof(copy)) {
        if (!versioned_read(params, &copy, sizeof(copy), BLOOM_LEAST_PARAMS)) {
            return BLOOM_INVALID;
        }
        params = &copy;
    }
    status = plan_first(params, env->size_limit_bytes, &parts, &next);
    if (status != BLOOM_OK) {
        return status;
    }
    if ((parts & PLAN_KEYED) != 0) {
        status = choose_secret(&params, &copy);
        if (status != BLOOM_OK) {
            return status;
        }
    }
    if (!bloom_set_params(bloom, params, parts, env)) {
        return BLOOM_NOMEM;
    }
    if (!layer_init(&bloom->first, (enum bloom_kind)params->kind, next.capacity,
                    next.geometry, env)) {
        bloom_free_structs(bloom, env);
        return BLOOM_NOMEM;
    }
    if (params->kind == BLOOM_REDISBLOOM) {
        set_extra_layer(&bloom->extra->first, params->error_rate);
    }
    return BLOOM_OK;
}

enum bloom_status
bloom_new(const struct bloom_params *params, const struct bloom_env *env,
          struct bloom **ret_bloom)
{
    struct bloom made;
    enum bloom_status status = bloom_init(&made, params, env);

    return status == BLOOM_OK ? bloom_keep(&made, env, ret_bloom) : status;
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
    struct bloom_odd *odd = bloom_odd_of(bloom);

    env = env_or_default(env);
    CHECK(!bloom_is_incomplete(bloom));
    memset(layers[0].lines, 0, (size_t)layer_bytes(&layers[0]));
    layers[0].items = 0;
    layers[0].refund = 0;
    for (uint32_t i = 1; i < bloom->count; i++) {
        layer_fini(&layers[i], env);
    }
    bloom->first = layers[0];
    if (bloom->count > 1) {
        bloom_chain_free(bloom, bloom->chain, bloom->count, env);
    }
    bloom->odd = odd;
    bloom->count = 1;
    if (bloom->traits != 0) {
        bloom->extra->older_items = 0;
    }
    if (bloom_kind(bloom) == BLOOM_DELETABLE) {
        bloom->extra->undone = 0;
    }
    bloom_check(bloom);
}

/* Returns the rate of the layer with this step (bloom_step()). */
static double
asked_rate(const struct bloom *bloom, uint32_t step)
{
    double first = bloom->error_rate;

    if (bloom_kind(bloom) == BLOOM_AGEING) {
        first /= bloom_extra_of(bloom)->generations + 1;
    }
    return sizing_layer_rate(first, bloom_tightening(bloom), step);
}

/* Returns the next layer's rate, before the limits of rates apply. */
static double
next_rate(const struct bloom *bloom)
{
    double rate;

    if (bloom_kind(bloom) != BLOOM_REDISBLOOM) {
        return asked_rate(bloom, bloom_step(bloom, bloom->count - 1U) + 1);
    }
    rate = bloom_extra_layers(bloom)[bloom->count - 1].rate *
           REDISBLOOM_TIGHTENING;
    return rate > 0 ? rate : DBL_TRUE_MIN;
}

/* Updates the additional fields for a new layer: the items of older layers, and
 * for kind redisbloom the layer's rate. */
static void
note_growth(struct bloom *bloom, double rate)
{
    struct bloom_extra *extra = bloom_extra_of(bloom);

    if (extra != NULL) {
        extra->older_items += bloom->chain->layers[bloom->count - 2].items;
    }
    if (bloom_kind(bloom) == BLOOM_REDISBLOOM) {
        set_extra_layer(&bloom_extra_layers(bloom)[bloom->count - 1], rate);
    }
}

struct plan
bloom_plan(const struct bloom *bloom, uint64_t limit_bytes,
           struct bloom_params *ret_params)
{
    struct plan plan = { .parts = bloom_parts(bloom),
                         .rate = next_rate(bloom),
                         .count = bloom->count,
                         .older = bloom->count - 1U -
                                  bloom_step(bloom, bloom->count - 1U),
                         .capacity = bloom_newest(bloom)->capacity };

    bloom_get_params(bloom, ret_params);
    plan.line_bytes =
        bloom_size(bloom) - plan_struct_bytes(plan.parts, bloom->count);
    if (ret_params->expansion > 0 && limit_bytes < INT64_MAX) {
        plan.module_bytes = plan_module_layers(ret_params, bloom->count);
    }
    return plan;
}

/* Appends one empty layer to a full filter, or leaves it as it is. */
static enum bloom_status
grow_layers(struct bloom *bloom, const struct bloom_env *env)
{
    uint32_t count = bloom->count + 1U;
    bool fits = plan_slots(count) == plan_slots(bloom->count);
    struct bloom_chain *chain = bloom->chain;
    struct bloom_params params = { .struct_size = sizeof(params) };
    struct plan_layer next;
    struct layer layer;
    struct plan grown;
    enum bloom_status status;

    CHECK(bloom_newest(bloom)->items >= bloom_newest(bloom)->capacity);
    env = env_or_default(env);
    grown = bloom_plan(bloom, env->size_limit_bytes, &params);
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
    if (!layer_init(&layer, bloom_kind(bloom), next.capacity, next.geometry,
                    env)) {
        goto fail_chain;
    }
    chain->layers[bloom->count] = layer;
    chain->capacity += next.capacity;
    chain->size_bytes = next.size_bytes;
    bloom_set_chain(bloom, chain, count, env);
    note_growth(bloom, grown.rate);
    bloom_check(bloom);
    return BLOOM_OK;

fail_chain:
    if (!fits) {
        bloom_chain_free(bloom, chain, count, env);
    }
    return BLOOM_NOMEM;
}

/* ---- the hot path: filters of one layer and short items come first, without
 * a stack frame; other cases are calls from there. ------------------------- */

/* Fetches all lines of the item in the newest layer, where an add writes and
 * half of all hits end, and its first line in a few older layers, where most
 * misses end. More fetches would only wait for each other. */
NOINLINE static void
prefetch_chain(const struct bloom *bloom, struct bloom_hash hash)
{
    const struct layer *layer = &bloom->chain->layers[bloom->count - 1];
    uint32_t most =
        layer->kind == BLOOM_AGEING ? PREFETCH_AGED : PREFETCH_OLDER;
    uint32_t older = bloom->count - 1U;

    layer_prefetch(layer, hash, layer->stripes);
    if (older > most) {
        older = most;
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

/* Fetches a chain's sums, and the layer structs that prefetch_chain() reads. */
void
bloom_fetch_layers(const struct bloom *bloom)
{
    uint32_t newest = bloom->count - 1;
    uint32_t oldest = newest > PREFETCH_OLDER ? newest - PREFETCH_OLDER : 0;
    const char *end;

    if (newest > 0) {
        end = (const char *)&bloom->chain->layers[newest + 1];
        prefetch(bloom->chain);
        for (const char *at = (const char *)&bloom->chain->layers[oldest];
             at < end; at += BLOOM_LINE_BYTES) {
            prefetch(at);
        }
        prefetch(end - 1);
    }
}

void
bloom_fetch(const struct bloom *bloom, struct bloom_hash hash)
{
    if (bloom->count > 1) {
        prefetch_chain(bloom, hash);
    } else {
        layer_prefetch(&bloom->first, hash, bloom->first.stripes);
    }
}

bool
bloom_outline(const struct bloom *bloom, struct bloom *ret_outline)
{
    if (bloom->traits != 0) {
        return false;
    }
    *ret_outline = *bloom;
    ret_outline->first = *bloom_newest(bloom);
    ret_outline->count = 1;
    ret_outline->odd = NULL;
    return true;
}

bool
bloom_hashes_alike(const struct bloom *a, const struct bloom *b)
{
    return a->seed64 == b->seed64 && a->traits == b->traits;
}

/* Returns the newest layer that seems to have the item, or the number of
 * layers. At an expansion of 2 the newest layer has half of all items, and each
 * older one has half of the rest. */
NOINLINE static uint32_t
find_layer(const struct bloom *bloom, struct bloom_hash hash)
{
    const struct layer *layers = bloom_layers_const(bloom);

    for (uint32_t i = bloom->count; i-- > 0;) {
        if (layer_contains(&layers[i], hash)) {
            return i;
        }
    }
    return bloom->count;
}

bool
bloom_contains(const struct bloom *bloom, struct bloom_hash hash)
{
    if (bloom->count > 1) {
        return find_layer(bloom, hash) < bloom->count;
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
        ret_found[i] = find_layer(bloom, hashes[i]) < bloom->count;
    }
}

enum bloom_status
bloom_count_one(struct bloom *bloom, const struct bloom_env *env)
{
    struct layer *newest = &bloom_layers(bloom)[bloom->count - 1];
    enum bloom_status status;

    if (newest->items >= newest->capacity) {
        status = grow_layers(bloom, env);
        if (status != BLOOM_OK) {
            return status;
        }
        newest = &bloom->chain->layers[bloom->count - 1];
    }
    newest->items++;
    return BLOOM_OK;
}

enum bloom_status
bloom_force(struct bloom *bloom, const struct bloom_env *env,
            struct bloom_hash hash)
{
    enum bloom_status status = bloom_count_one(bloom, env);

    if (status == BLOOM_OK) {
        (void)layer_add(&bloom_layers(bloom)[bloom->count - 1], hash);
    }
    return status;
}

void
bloom_add_over(struct bloom *bloom, struct bloom_hash hash)
{
    (void)layer_add(&bloom_layers(bloom)[bloom->count - 1], hash);
}

NOINLINE static enum bloom_status
chain_add(struct bloom *bloom, const struct bloom_env *env,
          struct bloom_hash hash, bool *ret_added)
{
    uint32_t at = find_layer(bloom, hash);
    struct layer *found = at < bloom->count ? &bloom_layers(bloom)[at] : NULL;
    enum bloom_status status;

    if (found != NULL && (found->kind != BLOOM_AGEING || found->age == 0)) {
        if (found->kind == BLOOM_DELETABLE) {
            (void)layer_add(found, hash); /* it marks collisions */
        }
        *ret_added = false;
        return BLOOM_OK;
    }
    status = bloom_force(bloom, env, hash);
    if (status == BLOOM_OK) {
        *ret_added = found == NULL;
    }
    return status;
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

    /* If all items fit the only layer, no add can fail. The difference is
     * signed: a filter of RedisBloom may have more items than its capacity. */
    if (bloom->count == 1 &&
        (int64_t)(first->capacity - first->items) >= (int64_t)count) {
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

/* Returns whether a large layer has had fewer than EACH touches a page. Items
 * fall on pages at random: NEARLY_ALL (8) touches a page leave hardly any page
 * untouched, and MOST (2) leave 14 % of the pages untouched. */
static bool
is_fresh(const struct layer *layer, uint64_t page_bytes, uint64_t each)
{
    uint64_t bytes = layer_bytes(layer);
    uint64_t pages = (bytes + page_bytes - 1) / page_bytes;

    return bytes >= PAGE_BYTES && layer->items * layer->stripes < each * pages;
}

bool
bloom_is_fresh(const struct bloom *bloom)
{
    return is_fresh(bloom_newest(bloom), SMALL_PAGE_BYTES, MOST);
}

void
bloom_touch(const struct bloom *bloom, const struct bloom_hash *hashes,
            size_t count)
{
    const struct layer *newest = bloom_newest(bloom);

    if (bloom_is_fresh(bloom)) {
        for (size_t i = 0; i < count; i++) {
            layer_ops_of(newest)->touch(newest, hashes[i]);
        }
    }
}

size_t
bloom_together(const struct bloom *bloom)
{
    const struct layer *newest = bloom_newest(bloom);
    uint64_t left =
        newest->items < newest->capacity ? newest->capacity - newest->items : 0;
    uint64_t size_bytes = bloom_size(bloom);
    size_t together = BLOOM_BATCH_MAX;

    if (bloom->count > MANY_LAYERS) {
        together = BLOOM_BATCH_MAX * MANY_LAYERS / bloom->count;
    }
    if (size_bytes >= PAGE_BYTES && is_fresh(newest, PAGE_BYTES, NEARLY_ALL)) {
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
    const struct bloom_info info = { .capacity = bloom_capacity(bloom),
                                     .items = bloom_items(bloom),
                                     .size_bytes = bloom_size(bloom),
                                     .layers = bloom->count,
                                     .kind = bloom_kind(bloom) };

    versioned_write(ret_info, &info, sizeof(info), LEAST_INFO);
}

uint64_t
bloom_growth_bytes(const struct bloom *bloom)
{
    unsigned parts = bloom_parts(bloom);

    return layer_bytes(bloom_newest(bloom)) +
           plan_chain_bytes(parts, bloom->count) -
           plan_chain_bytes(parts, bloom->count - 1U);
}

double
bloom_asked_rate(const struct bloom *bloom, uint32_t index)
{
    return bloom_kind(bloom) == BLOOM_REDISBLOOM
               ? bloom_extra_layers(bloom)[index].rate
               : asked_rate(bloom, bloom_step(bloom, index));
}

bool
bloom_get_layer(const struct bloom *bloom, uint32_t index,
                struct bloom_layer_info *ret_layer)
{
    struct bloom_layer_info info = { 0 };
    const struct layer *layer;
    struct geometry geometry;

    if (index >= bloom->count) {
        return false;
    }
    layer = &bloom_layers_const(bloom)[index];
    geometry = (struct geometry){ .lines = layer->line_count,
                                  .stripes = layer->stripes };
    info.capacity = layer->capacity;
    info.items = layer->items;
    info.lines = layer->line_count;
    info.stripes = layer->stripes;
    if (!foreign_is(layer->kind)) {
        info.hashes =
            layer->stripes * (BLOOM_LINE_BYTES / (uint32_t)sizeof(uint64_t));
        info.error_rate = sizing_exact_rate(layer->capacity, geometry);
    } else {
        info.hashes = layer->stripes;
        info.error_rate = bloom_asked_rate(bloom, index);
    }
    versioned_write(ret_layer, &info, sizeof(info), LEAST_LAYER_INFO);
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
    case BLOOM_SECRET:
        return "the filter is hashed with a secret that is not known here";
    }
    return "unknown status";
}
