/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies lines between filters and their stored form, which codec_head.c draws,
 * and between filters.
 */
#include "core/codec.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/err.h"
#include "base/little.h"
#include "core/env.h"
#include "core/keyed.h"
#include "core/parts.h"
#include "core/plan.h"

enum { ZERO_PIECE_BYTES = 4 << 10 };

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
codec_fill_lines(void *lines, const void *from, size_t bytes)
{
    fill_bytes(lines, from, bytes, false);
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
codec_dump_bytes(const struct bloom *bloom)
{
    const struct layer *layers = bloom_layers_const(bloom);
    uint64_t bytes = codec_head_bytes(bloom) + CODEC_CHECKSUM_BYTES;

    if (bloom_is_incomplete(bloom)) {
        bytes += 8 + bloom_extra_of(bloom)->coverage->count * CODEC_RANGE_BYTES;
    }
    for (uint32_t i = 0; i < bloom->count; i++) {
        bytes += layer_bytes(&layers[i]);
    }
    return bytes;
}

void
codec_dump(const struct bloom *bloom, uint64_t incarnation, void *ret_bytes)
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
          codec_dump_bytes(bloom));
    put_u64(to, XXH3_64bits(start, (size_t)(to - start)));
}

/* ---- load and copy ------------------------------------------------------- */

/* Sets up the filter's struct and allocates those of COUNT layers, which the
 * caller fills in. Without memory returns false, with nothing to undo. */
static bool
alloc_structs(struct bloom *bloom, const struct bloom_params *params,
              unsigned parts, uint32_t count, const struct bloom_env *env)
{
    struct bloom_chain *chain;

    if (!bloom_set_params(bloom, params, parts, env)) {
        return false;
    }
    if (count > 1) {
        chain = bloom_chain_new(bloom, count, env);
        if (chain == NULL) {
            bloom_free_structs(bloom, env);
            return false;
        }
        bloom_set_chain(bloom, chain, count, env);
    }
    return true;
}

/* Allocates zeroed lines for all layers, of the sizes in their structs. On
 * failure all that the struct points to is freed. */
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
            return false;
        }
    }
    return true;
}

static void
set_coverage(struct bloom_coverage *coverage, const struct codec_head *head)
{
    coverage->count = head->range_count;
    for (uint64_t i = 0; i < head->range_count; i++) {
        const uint8_t *at = head->ranges + i * CODEC_RANGE_BYTES;

        coverage->ranges[i].from = get_u64(at);
        coverage->ranges[i].to = get_u64(at + 8);
    }
}

/* Fills in the additional fields of a filter that has a struct bloom_extra. */
static void
set_extra(struct bloom *bloom, const struct codec_head *head)
{
    struct bloom_extra *extra = bloom_extra_of(bloom);

    if (extra == NULL) {
        return;
    }
    if (head->params.kind == BLOOM_REDISBLOOM) {
        extra->options = head->options;
        extra->growth = head->growth;
    }
    if (head->params.kind == BLOOM_DELETABLE) {
        extra->undone = head->undone;
    }
    for (uint32_t i = 0; i < bloom->count; i++) {
        struct codec_layer layer;

        codec_get_layer(head, i, &layer);
        extra->older_items += i + 1U < bloom->count ? layer.items : 0;
        if (head->params.kind == BLOOM_REDISBLOOM) {
            bloom_extra_layers(bloom)[i] = (struct bloom_extra_layer){
                .rate = layer.rate, .bits_per_item = layer.bits_per_item
            };
            extra->first = bloom_extra_layers(bloom)[0];
        }
    }
    if (head->incomplete) {
        set_coverage(extra->coverage, head);
    }
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
                                    .kind = (uint8_t)head->params.kind,
                                    .log2 = (uint8_t)layer.log2,
                                    .refund = (uint16_t)layer.refund };
        capacity += layer.capacity;
    }
    if (bloom->count > 1) {
        bloom->chain->capacity = capacity;
        bloom->chain->size_bytes = size_bytes;
    }
    set_extra(bloom, head);
}

/* Checks the checksum. LEN is at least the shortest length that
 * codec_read_head() accepts. */
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
codec_init(struct bloom *bloom, const struct codec_head *head,
           const struct bloom_env *env)
{
    unsigned parts = plan_parts(&head->params);
    uint64_t size_bytes;

    env = env_or_default(env);
    if ((parts & PLAN_KEYED) != 0 &&
        !keyed_is_known(head->params.fingerprint)) {
        return BLOOM_SECRET;
    }
    if (head->incomplete) {
        parts = (parts & ~(unsigned)PLAN_ODD) | PLAN_EXTRA | PLAN_COVERAGE;
    }
    if (!plan_size(parts, head->layers, head->line_bytes, &size_bytes) ||
        !plan_stored_fits(&head->params, head->layers, size_bytes,
                          env->size_limit_bytes)) {
        return BLOOM_LIMIT;
    }
    if (!alloc_structs(bloom, &head->params, parts, head->layers, env)) {
        return BLOOM_NOMEM;
    }
    set_shape(bloom, head, size_bytes);
    if (!alloc_lines(bloom, env)) {
        return BLOOM_NOMEM;
    }
    bloom_check(bloom);
    return BLOOM_OK;
}

enum bloom_status
codec_new(const struct codec_head *head, const struct bloom_env *env,
          struct bloom **ret_bloom)
{
    struct bloom made;
    enum bloom_status status = codec_init(&made, head, env);

    return status == BLOOM_OK ? bloom_keep(&made, env, ret_bloom) : status;
}

enum bloom_status
codec_new_empty(const struct bloom *bloom, const struct bloom_env *env,
                struct bloom **ret_bloom)
{
    uint8_t bytes[CODEC_FIXED_BYTES + CODEC_LAYER_BYTES_MAX];
    const struct bloom_extra *extra = bloom_extra_of(bloom);
    const struct layer *first = &bloom_layers_const(bloom)[0];
    struct codec_layer layer = { .capacity = first->capacity,
                                 .lines = first->line_count,
                                 .stripes = first->stripes,
                                 .log2 = first->log2 };
    struct codec_head head = { .params = { .struct_size = sizeof(head.params) },
                               .layers = 1,
                               .table = bytes + CODEC_FIXED_BYTES,
                               .line_bytes = layer_bytes(first) };

    CHECK(!bloom_is_incomplete(bloom));
    bloom_get_params(bloom, &head.params);
    if (bloom_kind(bloom) == BLOOM_REDISBLOOM) {
        head.options = extra->options;
        head.growth = extra->growth;
        layer.rate = bloom_extra_layers(bloom)[0].rate;
        layer.bits_per_item = bloom_extra_layers(bloom)[0].bits_per_item;
    }
    codec_put_layer((uint32_t)bloom_kind(bloom), 0, &layer, bytes);
    return codec_new(&head, env, ret_bloom);
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
codec_load(const void *data, size_t len, const struct bloom_env *env,
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
    const struct bloom_extra *extra = bloom_extra_of(bloom);
    struct bloom_extra *copied = bloom_extra_of(copy);
    struct layer *layers = bloom_layers(copy);

    if (bloom->count != copy->count || bloom->traits != copy->traits ||
        bloom_difference(bloom, copy) != NULL) {
        return false;
    }
    for (uint32_t i = 0; i < copy->count; i++) {
        if (layer_bytes(&from[i]) != layer_bytes(&layers[i]) ||
            from[i].capacity != layers[i].capacity) {
            return false; /* only the layers of an ageing filter can differ
                             here */
        }
    }
    for (uint32_t i = 0; i < copy->count; i++) {
        layers[i].items = from[i].items;
        layers[i].refund = from[i].refund;
        memcpy(layers[i].lines, from[i].lines, (size_t)layer_bytes(&from[i]));
    }
    if (extra != NULL && copied != NULL) {
        copied->older_items = extra->older_items;
        if (bloom_kind(bloom) == BLOOM_DELETABLE) {
            copied->undone = extra->undone;
        }
        if (bloom_kind(bloom) == BLOOM_AGEING) {
            copied->turn = extra->turn;
        }
    }
    return true;
}

/* Copies the additional fields of a complete filter that has a struct
 * bloom_extra. */
static void
copy_extra(const struct bloom *bloom, struct bloom *copy)
{
    const struct bloom_extra *from = bloom_extra_of(bloom);
    struct bloom_extra *to = bloom_extra_of(copy);

    if (from == NULL || to == NULL) {
        return;
    }
    *to = *from;
    if (bloom_is_keyed(bloom)) {
        *bloom_keyed_of(copy) = *bloom_keyed_of(bloom);
    }
    if (bloom_kind(bloom) == BLOOM_REDISBLOOM) {
        memcpy(bloom_extra_layers(copy), bloom_extra_layers(bloom),
               bloom->count * sizeof(struct bloom_extra_layer));
    }
}

enum bloom_status
bloom_copy(const struct bloom *bloom, const struct bloom_env *env,
           struct bloom **ret_bloom)
{
    const struct layer *from = bloom_layers_const(bloom);
    struct bloom_params params = { .struct_size = sizeof(params) };
    struct layer *layers;
    struct bloom copy;

    CHECK(!bloom_is_incomplete(bloom));
    env = env_or_default(env);
    bloom_get_params(bloom, &params);
    if (!plan_stored_fits(&params, bloom->count, bloom_size(bloom),
                          env->size_limit_bytes)) {
        return BLOOM_LIMIT;
    }
    if (!alloc_structs(&copy, &params, bloom_parts(bloom), bloom->count, env)) {
        return BLOOM_NOMEM;
    }
    copy_extra(bloom, &copy);
    layers = bloom_layers(&copy);
    memcpy(layers, from, bloom->count * sizeof(*layers));
    if (bloom->count > 1) {
        copy.chain->capacity = bloom->chain->capacity;
        copy.chain->size_bytes = bloom->chain->size_bytes;
    }
    if (!alloc_lines(&copy, env)) {
        return BLOOM_NOMEM;
    }
    for (uint32_t i = 0; i < copy.count; i++) {
        fill_bytes(layers[i].lines, from[i].lines,
                   (size_t)layer_bytes(&from[i]), false);
    }
    bloom_check(&copy);
    return bloom_keep(&copy, env, ret_bloom);
}
