/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stored form of a filter. Invariant: a filter has one stored form, and an
 * accepted dump is dumped to the same bytes again. All numbers are
 * little-endian.
 *
 *   offset  size  head
 *        0     4  magic "BLMY"
 *        4     2  version of this format: 1
 *        6     1  kind of all layers: 1 striped
 *        7     1  flags: 0
 *        8     4  expansion; 0: nonscaling
 *       12     4  n: number of layers, 1..1024
 *       16     8  error rate of layer 0, IEEE 754 binary64
 *       24     8  tightening, the same
 *       32    32  seed
 *       64     8  incarnation: a number of the caller
 *       72  32 n  layers, oldest first:
 *                   0  8  capacity
 *                   8  8  items
 *                  16  4  stripes
 *                  20  4  0
 *                  24  8  lines, of each stripe
 *  72+32 n        lines of all layers, oldest first; in a layer stripe after
 *                 stripe (core/layer.h), a line being 8 words of 64 bits
 *      end     8  XXH3-64 of everything before
 *
 * Lines and stripes are stored, never recomputed: exp and pow of two libraries
 * may differ in the last bit. Every later version keeps the places of magic and
 * version, and the XXH3-64 in the last 8 bytes, so that a newer dump is not
 * mistaken for a damaged one.
 */
#include "core/codec.h"

#include <float.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/err.h"
#include "base/little.h"
#include "core/bloom.h"
#include "core/env.h"
#include "core/plan.h"
#include "core/sizing.h"

enum {
    AT_VERSION = 4,
    AT_KIND = 6,
    AT_FLAGS = 7,
    AT_EXPANSION = 8,
    AT_LAYERS = 12,
    AT_ERROR_RATE = 16,
    AT_TIGHTENING = 24,
    AT_SEED = 32,
    AT_INCARNATION = 64,
    LAYER_AT_CAPACITY = 0,
    LAYER_AT_ITEMS = 8,
    LAYER_AT_STRIPES = 16,
    LAYER_AT_PAD = 20,
    LAYER_AT_LINES = 24,
    KIND_STRIPED = 1, /* as stored; enum layer_kind is not */
    FLAGS_NONE = 0,
    ZERO_PIECE_BYTES = 4 << 10
};

static const uint8_t magic[4] = { 'B', 'L', 'M', 'Y' };

_Static_assert((int)AT_EXPANSION >= (int)CODEC_CHECKSUM_BYTES,
               "checksum_holds()");
_Static_assert(BLOOM_KINDS == 4, "a new kind needs a stored number");

/* ---- lines --------------------------------------------------------------- */

/* Copies words between the machine's byte order and the stored one. */
static void
copy_words(void *to, const void *from, size_t bytes)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(to, from, bytes);
#else
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        put_u64((uint8_t *)to + at, get_u64((const uint8_t *)from + at));
    }
#endif
}

/* Copies lines, in the stored or the machine's order, into zeroed lines. Pieces
 * of zeros are not written, so that their memory stays untouched. */
static void
fill_bytes(void *to, const void *from, size_t bytes, bool stored)
{
    static const uint8_t zeros[ZERO_PIECE_BYTES];

    for (size_t at = 0; at < bytes; at += ZERO_PIECE_BYTES) {
        size_t left = bytes - at;
        size_t step = left < ZERO_PIECE_BYTES ? left : ZERO_PIECE_BYTES;
        const uint8_t *piece = (const uint8_t *)from + at;

        if (memcmp(piece, zeros, step) == 0) {
            continue;
        }
        if (stored) {
            copy_words((uint8_t *)to + at, piece, step);
        } else {
            memcpy((uint8_t *)to + at, piece, step);
        }
    }
}

void
codec_to_host(void *lines, size_t bytes)
{
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__) {
        copy_words(lines, lines, bytes); /* word by word: in place is fine */
    }
}

const void *
codec_stored(const void *lines, size_t bytes, void *scratch)
{
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
        return lines;
    }
    copy_words(scratch, lines, bytes);
    return scratch;
}

/* ---- dump ---------------------------------------------------------------- */

uint64_t
bloom_dump_bytes(const struct bloom *bloom)
{
    const struct layer *layers = bloom_layers_const(bloom);
    uint64_t bytes = CODEC_FIXED_BYTES + CODEC_CHECKSUM_BYTES;

    for (uint32_t i = 0; i < bloom->count; i++) {
        bytes += CODEC_LAYER_BYTES + layer_bytes(&layers[i]);
    }
    return bytes;
}

static void
put_fixed(const struct bloom *bloom, uint64_t incarnation, uint8_t *to)
{
    memcpy(to, magic, sizeof(magic));
    put_u16(to + AT_VERSION, CODEC_VERSION);
    to[AT_KIND] = KIND_STRIPED;
    to[AT_FLAGS] = FLAGS_NONE;
    put_u32(to + AT_EXPANSION, bloom->expansion);
    put_u32(to + AT_LAYERS, bloom->count);
    put_double(to + AT_ERROR_RATE, bloom->error_rate);
    put_double(to + AT_TIGHTENING, bloom_tightening(bloom));
    bloom_get_seed(bloom, to + AT_SEED);
    put_u64(to + AT_INCARNATION, incarnation);
}

size_t
codec_put_head(const struct bloom *bloom, uint64_t incarnation, void *ret_bytes)
{
    uint8_t *to = ret_bytes;

    CHECK(bloom->count >= 1 && bloom->count <= BLOOM_LAYERS_MAX);
    put_fixed(bloom, incarnation, to);
    to += CODEC_FIXED_BYTES;
    for (uint32_t i = 0; i < bloom->count; i++) {
        const struct layer *layer = &bloom_layers_const(bloom)[i];

        put_u64(to + LAYER_AT_CAPACITY, layer->capacity);
        put_u64(to + LAYER_AT_ITEMS, layer->items);
        put_u32(to + LAYER_AT_STRIPES, layer->stripes);
        put_u32(to + LAYER_AT_PAD, 0);
        put_u64(to + LAYER_AT_LINES, layer->line_count);
        to += CODEC_LAYER_BYTES;
    }
    return (size_t)(to - (uint8_t *)ret_bytes);
}

void
bloom_dump(const struct bloom *bloom, uint64_t incarnation, void *ret_bytes)
{
    const struct layer *layers = bloom_layers_const(bloom);
    uint8_t *start = ret_bytes;
    uint8_t *to = start + codec_put_head(bloom, incarnation, start);

    for (uint32_t i = 0; i < bloom->count; i++) {
        size_t bytes = (size_t)layer_bytes(&layers[i]);

        copy_words(to, layers[i].lines, bytes);
        to += bytes;
    }
    CHECK((size_t)(to - start) + CODEC_CHECKSUM_BYTES ==
          bloom_dump_bytes(bloom));
    put_u64(to, XXH3_64bits(start, (size_t)(to - start)));
}

/* ---- head ---------------------------------------------------------------- */

void
codec_get_layer(const struct codec_head *head, uint32_t index,
                struct codec_layer *ret_layer)
{
    const uint8_t *at = head->table + (size_t)index * CODEC_LAYER_BYTES;

    CHECK(index < head->layers);
    *ret_layer =
        (struct codec_layer){ .capacity = get_u64(at + LAYER_AT_CAPACITY),
                              .items = get_u64(at + LAYER_AT_ITEMS),
                              .lines = get_u64(at + LAYER_AT_LINES),
                              .stripes = get_u32(at + LAYER_AT_STRIPES),
                              .pad = get_u32(at + LAYER_AT_PAD) };
}

/* Zero was never a version or a kind: it is damage, not a newer format. */
static enum bloom_status
check_format(const uint8_t *at, size_t len)
{
    uint16_t version;

    if (len < AT_EXPANSION || memcmp(at, magic, sizeof(magic)) != 0) {
        return BLOOM_CORRUPT;
    }
    version = get_u16(at + AT_VERSION);
    if (version == 0) {
        return BLOOM_CORRUPT;
    }
    if (version != CODEC_VERSION) {
        return BLOOM_VERSION;
    }
    if (at[AT_KIND] == 0) {
        return BLOOM_CORRUPT;
    }
    return at[AT_KIND] == KIND_STRIPED && at[AT_FLAGS] == FLAGS_NONE
               ? BLOOM_OK
               : BLOOM_VERSION;
}

/* Sets line_bytes and total_bytes. False if a sum overflows. */
static bool
sum_bytes(struct codec_head *head)
{
    head->line_bytes = 0;
    for (uint32_t i = 0; i < head->layers; i++) {
        struct codec_layer layer;
        struct geometry geometry;
        uint64_t bytes;

        codec_get_layer(head, i, &layer);
        geometry.lines = layer.lines;
        geometry.stripes = layer.stripes;
        if (!sizing_bytes(geometry, &bytes) ||
            __builtin_add_overflow(head->line_bytes, bytes,
                                   &head->line_bytes)) {
            return false;
        }
    }
    return !__builtin_add_overflow(head->line_bytes,
                                   head->head_bytes + CODEC_CHECKSUM_BYTES,
                                   &head->total_bytes);
}

enum bloom_status
codec_read_head(const void *data, size_t len, struct codec_head *ret_head)
{
    const uint8_t *at = data;
    struct codec_head head = { 0 };
    struct codec_layer first;
    enum bloom_status status = check_format(at, len);

    if (status != BLOOM_OK) {
        return status;
    }
    if (len < CODEC_FIXED_BYTES) {
        return BLOOM_CORRUPT;
    }
    head.layers = get_u32(at + AT_LAYERS);
    if (head.layers < 1 || head.layers > BLOOM_LAYERS_MAX) {
        return BLOOM_CORRUPT;
    }
    head.head_bytes =
        CODEC_FIXED_BYTES + (size_t)head.layers * CODEC_LAYER_BYTES;
    head.table = at + CODEC_FIXED_BYTES;
    if (len < head.head_bytes || !sum_bytes(&head)) {
        return BLOOM_CORRUPT;
    }
    codec_get_layer(&head, 0, &first);
    head.incarnation = get_u64(at + AT_INCARNATION);
    head.params =
        (struct bloom_params){ .capacity = first.capacity,
                               .error_rate = get_double(at + AT_ERROR_RATE),
                               .tightening = get_double(at + AT_TIGHTENING),
                               .expansion = get_u32(at + AT_EXPANSION),
                               .stripes = first.stripes,
                               .lines = first.lines };
    memcpy(head.params.seed, at + AT_SEED, BLOOM_SEED_BYTES);
    *ret_head = head;
    return BLOOM_OK;
}

/* Returns whether the newer of two layers may follow the older. */
static bool
follows(const struct codec_layer *older, const struct codec_layer *newer,
        uint32_t expansion)
{
    uint64_t capacity;

    return older->items == older->capacity &&
           !__builtin_mul_overflow(older->capacity, (uint64_t)expansion,
                                   &capacity) &&
           capacity <= BLOOM_CAPACITY_MAX && newer->capacity == capacity;
}

/* sizing_acceptable() takes a microsecond, and a server may have millions of
 * filters that differ only in their seeds. No capacity is 0, so an empty slot
 * equals no layer. */
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

/* Accepts the chains that bloom_new() and bloom_add() can make. */
enum bloom_status
codec_check_head_known(const struct codec_head *head, struct codec_memo *memo)
{
    const struct bloom_params *params = &head->params;
    struct codec_layer older = { 0 };
    uint64_t capacity = 0;

    if (!plan_is_valid(params) ||
        (params->expansion == 0 && head->layers != 1)) {
        return BLOOM_CORRUPT;
    }
    for (uint32_t i = 0; i < head->layers; i++) {
        double rate =
            sizing_layer_rate(params->error_rate, params->tightening, i);
        struct codec_known *known =
            memo != NULL && i < CODEC_MEMO_LAYERS ? &memo->layers[i] : NULL;
        struct codec_layer layer;

        codec_get_layer(head, i, &layer);
        if (i > 0 &&
            (rate <= DBL_MIN || !follows(&older, &layer, params->expansion))) {
            return BLOOM_CORRUPT;
        }
        if (layer.items > layer.capacity || layer.pad != 0 ||
            !geometry_holds(&layer, rate, known) ||
            __builtin_add_overflow(capacity, layer.capacity, &capacity)) {
            return BLOOM_CORRUPT;
        }
        older = layer;
    }
    return BLOOM_OK;
}

/* ---- load and copy ------------------------------------------------------- */

/* Allocates the structs of COUNT layers; the caller fills in the layers. NULL:
 * no memory. */
static struct bloom *
alloc_structs(const struct bloom_params *params, bool odd, uint32_t count,
              const struct bloom_env *env)
{
    struct bloom *bloom = env->alloc(env->ctx, sizeof(*bloom));
    struct bloom_chain *chain;

    if (bloom == NULL) {
        return NULL;
    }
    if (!bloom_set_params(bloom, params, odd, env)) {
        goto fail_bloom;
    }
    if (count > 1) {
        chain = bloom_chain_new(bloom, count, env);
        if (chain == NULL) {
            goto fail_params;
        }
        bloom_set_chain(bloom, chain, count, env);
    }
    return bloom;

fail_params:
    bloom_free_structs(bloom, env);
fail_bloom:
    env->free(env->ctx, bloom, sizeof(*bloom));
    return NULL;
}

/* Allocates zeroed lines for all layers, of the sizes in their structs. On
 * failure the filter is freed. */
static bool
alloc_lines(struct bloom *bloom, const struct bloom_env *env)
{
    struct layer *layers = bloom_layers(bloom);

    for (uint32_t i = 0; i < bloom->count; i++) {
        size_t bytes = (size_t)layer_bytes(&layers[i]);

        layers[i].lines = env->alloc_lines(env->ctx, bytes);
        if (layers[i].lines == NULL) {
            while (i-- > 0) {
                layer_fini(&layers[i], env);
            }
            bloom_free_structs(bloom, env);
            env->free(env->ctx, bloom, sizeof(*bloom));
            return false;
        }
    }
    return true;
}

/* Fills in the layers, without their lines, and the sums. */
static void
set_shape(struct bloom *bloom, const struct codec_head *head,
          uint64_t size_bytes)
{
    struct layer *layers = bloom_layers(bloom);
    uint64_t capacity = 0;

    for (uint32_t i = 0; i < bloom->count; i++) {
        struct codec_layer layer;

        codec_get_layer(head, i, &layer);
        layers[i] = (struct layer){ .line_count = layer.lines,
                                    .capacity = layer.capacity,
                                    .items = layer.items,
                                    .stripes = layer.stripes,
                                    .kind = BLOOM_NATIVE };
        capacity += layer.capacity;
    }
    if (bloom->count > 1) {
        bloom->chain->capacity = capacity;
        bloom->chain->size_bytes = size_bytes;
    }
}

/* LEN is at least the shortest that codec_read_head() accepts. */
static bool
checksum_holds(const uint8_t *data, size_t len)
{
    size_t covered = len - CODEC_CHECKSUM_BYTES;

    return get_u64(data + covered) == XXH3_64bits(data, covered);
}

/* Checks length, checksum and fields, the cheapest first. */
static enum bloom_status
check_dump(const uint8_t *data, size_t len, struct codec_head *ret_head)
{
    enum bloom_status status = codec_read_head(data, len, ret_head);

    if (status == BLOOM_VERSION) {
        return checksum_holds(data, len) ? BLOOM_VERSION : BLOOM_CORRUPT;
    }
    if (status != BLOOM_OK) {
        return status;
    }
    if (ret_head->total_bytes != len || !checksum_holds(data, len)) {
        return BLOOM_CORRUPT;
    }
    return codec_check_head(ret_head);
}

enum bloom_status
codec_new(const struct codec_head *head, const struct bloom_env *env,
          struct bloom **ret_bloom)
{
    bool odd = plan_parts(&head->params) != 0;
    struct bloom *bloom;
    uint64_t size_bytes;

    env = env_or_default(env);
    if (!plan_size(odd, head->layers, head->line_bytes, &size_bytes) ||
        !plan_stored_fits(&head->params, head->layers, size_bytes,
                          env->size_limit_bytes)) {
        return BLOOM_LIMIT;
    }
    bloom = alloc_structs(&head->params, odd, head->layers, env);
    if (bloom == NULL) {
        return BLOOM_NOMEM;
    }
    set_shape(bloom, head, size_bytes);
    if (!alloc_lines(bloom, env)) {
        return BLOOM_NOMEM;
    }
    bloom_check(bloom);
    *ret_bloom = bloom;
    return BLOOM_OK;
}

void *
codec_layer_lines(struct bloom *bloom, uint32_t index, size_t *ret_bytes)
{
    const struct layer *layer;

    if (index >= bloom->count) {
        return NULL;
    }
    layer = &bloom_layers(bloom)[index];
    *ret_bytes = (size_t)layer_bytes(layer);
    return layer->lines;
}

void
codec_fill(struct bloom *bloom, const void *stored_lines)
{
    const struct layer *layers = bloom_layers(bloom);
    const uint8_t *from = stored_lines;

    for (uint32_t i = 0; i < bloom->count; i++) {
        size_t bytes = (size_t)layer_bytes(&layers[i]);

        fill_bytes(layers[i].lines, from, bytes, true);
        from += bytes;
    }
}

enum bloom_status
bloom_load(const void *data, size_t len, const struct bloom_env *env,
           uint64_t *ret_incarnation, struct bloom **ret_bloom)
{
    struct codec_head head;
    struct bloom *bloom;
    enum bloom_status status = check_dump(data, len, &head);

    if (status == BLOOM_OK) {
        status = codec_new(&head, env, &bloom);
    }
    if (status != BLOOM_OK) {
        return status;
    }
    codec_fill(bloom, (const uint8_t *)data + head.head_bytes);
    *ret_incarnation = head.incarnation;
    *ret_bloom = bloom;
    return BLOOM_OK;
}

bool
bloom_copy_into(const struct bloom *bloom, struct bloom *copy)
{
    const struct layer *from = bloom_layers_const(bloom);
    struct layer *layers = bloom_layers(copy);

    if (bloom->count != copy->count || bloom_difference(bloom, copy) != NULL) {
        return false;
    }
    for (uint32_t i = 0; i < copy->count; i++) {
        layers[i].items = from[i].items;
        memcpy(layers[i].lines, from[i].lines, (size_t)layer_bytes(&from[i]));
    }
    return true;
}

enum bloom_status
bloom_copy(const struct bloom *bloom, const struct bloom_env *env,
           struct bloom **ret_bloom)
{
    const struct layer *from = bloom_layers_const(bloom);
    struct bloom_params params;
    struct layer *layers;
    struct bloom *copy;

    env = env_or_default(env);
    bloom_get_params(bloom, &params);
    if (!plan_stored_fits(&params, bloom->count, bloom_size(bloom),
                          env->size_limit_bytes)) {
        return BLOOM_LIMIT;
    }
    copy = alloc_structs(&params, plan_parts(&params) != 0, bloom->count, env);
    if (copy == NULL) {
        return BLOOM_NOMEM;
    }
    layers = bloom_layers(copy);
    memcpy(layers, from, bloom->count * sizeof(*layers));
    if (bloom->count > 1) {
        copy->chain->capacity = bloom->chain->capacity;
        copy->chain->size_bytes = bloom->chain->size_bytes;
    }
    if (!alloc_lines(copy, env)) {
        return BLOOM_NOMEM;
    }
    for (uint32_t i = 0; i < copy->count; i++) {
        fill_bytes(layers[i].lines, from[i].lines,
                   (size_t)layer_bytes(&from[i]), false);
    }
    bloom_check(copy);
    *ret_bloom = copy;
    return BLOOM_OK;
}
