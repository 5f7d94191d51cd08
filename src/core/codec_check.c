/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks heads: only chains to which filters can grow are accepted.
 */
#include "core/codec_head.h"

#include <float.h>
#include <string.h>

#include "base/little.h"
#include "core/foreign.h"
#include "core/plan.h"
#include "core/sizing.h"
#include "core/turns.h"

/* Returns whether the newer of two layers may follow the older. */
static bool
follows(uint32_t kind, const struct codec_layer *older,
        const struct codec_layer *newer, uint32_t expansion)
{
    uint64_t capacity;

    return (older->items == older->capacity || kind == BLOOM_DELETABLE ||
            kind == BLOOM_AGEING) &&
           !__builtin_mul_overflow(older->capacity, (uint64_t)expansion,
                                   &capacity) &&
           capacity <= BLOOM_CAPACITY_MAX && newer->capacity == capacity;
}

/* Remembers results, since sizing_acceptable() takes a microsecond, and a
 * server may have millions of filters that differ only in their seeds. No
 * capacity is 0, so an empty slot never equals a layer. */
static bool
geometry_holds(const struct codec_layer *layer, double rate,
               struct codec_known *known)
{
    const struct geometry geometry = { .lines = layer->lines,
                                       .stripes = layer->stripes };

    if (known != NULL && layer->capacity > 0 &&
        known->capacity == layer->capacity && known->lines == layer->lines &&
        known->stripes == layer->stripes && known->rate == rate) {
        return true;
    }
    if (!sizing_acceptable(layer->capacity, rate, geometry)) {
        return false;
    }
    if (known != NULL) {
        *known = (struct codec_known){ .capacity = layer->capacity,
                                       .lines = layer->lines,
                                       .rate = rate,
                                       .stripes = layer->stripes };
    }
    return true;
}

enum bloom_status
codec_check_head(const struct codec_head *head)
{
    return codec_check_head_known(head, NULL);
}

/* Returns the length of the stream. */
static uint64_t
stream_bytes(const struct codec_head *head)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < head->layers; i++) {
        struct codec_layer layer;

        codec_get_layer(head, i, &layer);
        bytes += foreign_bytes(layer.lines);
    }
    return foreign_is(head->params.kind) ? bytes : head->line_bytes;
}

/* Checks the parts of the stream that have come. They must not be the whole
 * stream. */
static bool
ranges_hold(const struct codec_head *head)
{
    uint64_t whole = stream_bytes(head);
    uint64_t end = 0;

    for (uint64_t i = 0; i < head->range_count; i++) {
        const uint8_t *at = head->ranges + i * CODEC_RANGE_BYTES;
        uint64_t from = get_u64(at);
        uint64_t to = get_u64(at + 8);

        if ((i > 0 && from <= end) || from >= to || to > whole ||
            to - from == whole) {
            return false;
        }
        end = to;
    }
    return true;
}

/* Accepts what RedisBloom's own loader accepts, but the number of hashes must
 * follow from the bits an item. check_redisbloom() limits the items. */
static bool
redisbloom_layer_holds(const struct codec_layer *layer)
{
    return layer->rate > 0 && layer->rate < 1 && layer->refund == 0 &&
           layer->log2 <= REDISBLOOM_LOG2_MAX &&
           (layer->log2 == 0 || layer->lines >= (uint64_t)1 << layer->log2) &&
           layer->stripes == redisbloom_hashes(layer->bits_per_item);
}

static enum bloom_status
check_redisbloom(const struct codec_head *head)
{
    static const uint8_t no_seed[BLOOM_SEED_BYTES];
    const struct bloom_params *params = &head->params;
    uint64_t capacity = 0;
    uint64_t items = 0;
    struct codec_layer layer;

    for (uint32_t i = 0; i < head->layers; i++) {
        codec_get_layer(head, i, &layer);
        if (!redisbloom_layer_holds(&layer) ||
            __builtin_add_overflow(capacity, layer.capacity, &capacity) ||
            __builtin_add_overflow(items, layer.items, &items) ||
            capacity > BLOOM_CAPACITY_MAX || items > BLOOM_CAPACITY_MAX) {
            return BLOOM_CORRUPT;
        }
    }
    codec_get_layer(head, 0, &layer);
    return params->error_rate == layer.rate &&
                   params->tightening == REDISBLOOM_TIGHTENING &&
                   memcmp(params->seed, no_seed, sizeof(no_seed)) == 0
               ? BLOOM_OK
               : BLOOM_CORRUPT;
}

/* valkey-bloom takes the size and the hashes of a layer from its header, so
 * they need not follow the formula. */
static bool
shape_holds(const struct codec_head *head, const struct codec_layer *layer,
            double rate, struct codec_known *known)
{
    if (head->params.kind == BLOOM_DELETABLE
            ? 1U << layer->log2 != head->params.region ||
                  layer->refund >= layer->stripes * 8
            : layer->log2 != 0 || layer->refund != 0) {
        return false;
    }
    if (head->params.kind == BLOOM_VALKEYBLOOM) {
        return layer->lines % 8 == 0 && layer->stripes <= FOREIGN_HASHES_MAX;
    }
    return geometry_holds(layer, rate, known);
}

/* Checks one layer of an ageing filter. `first` is the filter's first layer,
 * and `older` the one before `layer`, or NULL. *step counts the layers of the
 * same generation before a layer: first before `older`, then before `layer`. */
static bool
aged_layer_holds(const struct codec_head *head, const struct codec_layer *first,
                 const struct codec_layer *older,
                 const struct codec_layer *layer, uint32_t *step)
{
    const struct bloom_params one = plan_generation(&head->params);

    if (layer->refund > one.generations || layer->log2 != 0 ||
        layer->items > layer->capacity) {
        return false;
    }
    if (older != NULL && layer->refund == older->refund) {
        ++*step;
        return one.expansion > 0 &&
               sizing_layer_rate(one.error_rate, one.tightening, *step) >
                   DBL_MIN &&
               follows(one.kind, older, layer, one.expansion);
    }
    *step = 0;
    return layer->capacity == one.capacity && layer->lines == first->lines &&
           layer->stripes == first->stripes &&
           (older == NULL || layer->refund < older->refund);
}

/* Accepts what core/ageing.h can make. */
static enum bloom_status
check_ageing(const struct codec_head *head, struct codec_memo *memo)
{
    const struct bloom_params *params = &head->params;
    const struct bloom_params one = plan_generation(params);
    struct codec_layer first = { 0 };
    struct codec_layer older = { 0 };
    uint64_t capacity = 0;
    uint32_t step = 0;

    codec_get_layer(head, 0, &first);
    for (uint32_t i = 0; i < head->layers; i++) {
        struct codec_layer layer;

        codec_get_layer(head, i, &layer);
        if (!aged_layer_holds(head, &first, i > 0 ? &older : NULL, &layer,
                              &step) ||
            __builtin_add_overflow(capacity, layer.capacity, &capacity) ||
            !geometry_holds(
                &layer, sizing_layer_rate(one.error_rate, one.tightening, step),
                memo != NULL && step < CODEC_MEMO_LAYERS ? &memo->layers[step]
                                                         : NULL)) {
            return BLOOM_CORRUPT;
        }
        older = layer;
    }
    return older.refund == 0 &&
                   head->turn == turns_at(params->seconds, params->generations,
                                          params->now_ms)
               ? BLOOM_OK
               : BLOOM_CORRUPT;
}

/* Accepts the chains that bloom_new() and bloom_add() can make. */
enum bloom_status
codec_check_head_known(const struct codec_head *head, struct codec_memo *memo)
{
    const struct bloom_params *params = &head->params;
    struct codec_layer older = { 0 };
    uint64_t capacity = 0;

    if (head->incomplete && !ranges_hold(head)) {
        return BLOOM_CORRUPT;
    }
    if (params->kind == BLOOM_REDISBLOOM) {
        return check_redisbloom(head);
    }
    if (!plan_is_valid(params)) {
        return BLOOM_CORRUPT;
    }
    if (params->kind == BLOOM_AGEING) {
        return check_ageing(head, memo);
    }
    if (params->expansion == 0 && head->layers != 1) {
        return BLOOM_CORRUPT;
    }
    for (uint32_t i = 0; i < head->layers; i++) {
        double rate =
            sizing_layer_rate(params->error_rate, params->tightening, i);
        struct codec_known *known =
            memo != NULL && i < CODEC_MEMO_LAYERS ? &memo->layers[i] : NULL;
        struct codec_layer layer;

        codec_get_layer(head, i, &layer);
        if (i > 0 && (rate <= DBL_MIN || !follows(params->kind, &older, &layer,
                                                  params->expansion))) {
            return BLOOM_CORRUPT;
        }
        if (layer.items > layer.capacity ||
            !shape_holds(head, &layer, rate, known) ||
            __builtin_add_overflow(capacity, layer.capacity, &capacity)) {
            return BLOOM_CORRUPT;
        }
        older = layer;
    }
    return BLOOM_OK;
}
