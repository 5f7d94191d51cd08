/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The union of filters, in three steps: compare all layers, allocate, and
 * write. Only the first two can fail, and they change nothing.
 */
#include "core/bloom.h"

#include <string.h>

#include "base/err.h"
#include "core/ageing.h"
#include "core/collision.h"
#include "core/env.h"
#include "core/foreign.h"
#include "core/parts.h"
#include "core/plan.h"

enum {
    BLOCK_LINES = 64, /* lines of a union computed at a time */
    WATCHED = 64      /* parts that are compared with the union in the same
                         pass */
};

/* The filters that are united. */
struct parts {
    struct bloom *into;
    const struct bloom *const *others;
    size_t count;          /* number of `others` */
    uint64_t newest_items; /* of the union */
    bool over;             /* a layer may get more items than its capacity: it
                              then counts as full */
};

/* Returns part 0, which is written to, or one of the others. */
static const struct bloom *
part_at(const struct parts *parts, size_t at)
{
    return at == 0 ? parts->into : parts->others[at - 1];
}

static const struct layer *
layer_of(const struct parts *parts, size_t at, uint32_t index)
{
    const struct bloom *part = part_at(parts, at);

    return index < part->count ? &bloom_layers_const(part)[index] : NULL;
}

static size_t
lines_of(const struct layer *layer)
{
    return (size_t)layer->line_count * layer->stripes;
}

/* ---- whether they can be united ------------------------------------------ */

static bool
same_shape(const struct layer *a, const struct layer *b)
{
    return a->log2 == b->log2 && a->stripes == b->stripes &&
           a->line_count == b->line_count && a->capacity == b->capacity;
}

/* Compares the additional fields of filters of kind redisbloom. */
static bool
same_extra(const struct bloom *a, const struct bloom *b)
{
    const struct bloom_extra *left = bloom_extra_of(a);
    const struct bloom_extra *right = bloom_extra_of(b);
    uint32_t count = a->count < b->count ? a->count : b->count;

    return bloom_kind(a) != BLOOM_REDISBLOOM ||
           (left->options == right->options && left->growth == right->growth &&
            memcmp(bloom_extra_layers(a), bloom_extra_layers(b),
                   count * sizeof(struct bloom_extra_layer)) == 0);
}

static bool
same_seed(const struct bloom *a, const struct bloom *b)
{
    uint8_t left[BLOOM_SEED_BYTES];
    uint8_t right[BLOOM_SEED_BYTES];

    bloom_get_seed(a, left);
    bloom_get_seed(b, right);
    return memcmp(left, right, BLOOM_SEED_BYTES) == 0;
}

static bool
same_ageing(const struct bloom *a, const struct bloom *b)
{
    const struct bloom_extra *left = bloom_extra_of(a);
    const struct bloom_extra *right = bloom_extra_of(b);

    return bloom_kind(a) != BLOOM_AGEING ||
           (left->seconds == right->seconds &&
            left->generations == right->generations);
}

/* Returns how many layers of both can be compared. For kind ageing that is only
 * the first layer, since the others may be of different generations. */
static uint32_t
comparable(const struct bloom *a, const struct bloom *b)
{
    uint32_t count = a->count < b->count ? a->count : b->count;

    return bloom_kind(a) == BLOOM_AGEING ? 1 : count;
}

const char *
bloom_difference(const struct bloom *a, const struct bloom *b)
{
    const struct layer *left = bloom_layers_const(a);
    const struct layer *right = bloom_layers_const(b);

    if (bloom_kind(a) != bloom_kind(b)) {
        return "layouts";
    }
    if (bloom_kind(a) == BLOOM_DELETABLE && left[0].log2 != right[0].log2) {
        return "regions";
    }
    if (!same_ageing(a, b)) {
        return "ageing times";
    }
    if (bloom_is_keyed(a) != bloom_is_keyed(b)) {
        return "hashes";
    }
    if (bloom_is_keyed(a) &&
        bloom_keyed_of(a)->fingerprint != bloom_keyed_of(b)->fingerprint) {
        return "hash secrets";
    }
    if (!same_seed(a, b)) {
        return "seeds";
    }
    if (left[0].capacity != right[0].capacity ||
        (bloom_kind(a) == BLOOM_AGEING &&
         bloom_capacity(a) != bloom_capacity(b))) {
        return "capacities";
    }
    if (a->error_rate != b->error_rate) {
        return "error rates";
    }
    if (bloom_tightening(a) != bloom_tightening(b)) {
        return "tightening ratios";
    }
    if (a->expansion != b->expansion) {
        return "expansions";
    }
    for (uint32_t i = 0; i < comparable(a, b); i++) {
        if (!same_shape(&left[i], &right[i])) {
            return "layer shapes";
        }
    }
    return same_extra(a, b) ? NULL : "layer shapes";
}

/* Compares each part with the longest, which has all layers of the union. */
static bool
find_longest(const struct parts *parts, const struct bloom **ret_longest)
{
    const struct bloom *longest = parts->into;

    for (size_t at = 1; at <= parts->count; at++) {
        if (part_at(parts, at)->count > longest->count) {
            longest = part_at(parts, at);
        }
    }
    for (size_t at = 0; at <= parts->count; at++) {
        if (bloom_difference(longest, part_at(parts, at)) != NULL) {
            return false;
        }
    }
    *ret_longest = longest;
    return true;
}

/* ---- how many items it would have ---------------------------------------- */

static void
or_lines(struct line *to, const struct line *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (unsigned w = 0; w < 8; w++) {
            to[i].words[w] |= from[i].words[w];
        }
    }
}

/* Computes one block of the union of all layers INDEX. In *whole, each of the
 * first WATCHED parts has a bit. Clears the bits of those parts that have no
 * such layer, or whose block lacks a bit of the union. */
static void
unite_block(const struct parts *parts, uint32_t index, size_t from,
            size_t count, struct line *ret_block, uint64_t *whole)
{
    size_t bytes = count * sizeof(*ret_block);

    memset(ret_block, 0, bytes);
    for (size_t at = 0; at <= parts->count; at++) {
        const struct layer *layer = layer_of(parts, at, index);

        if (layer != NULL) {
            or_lines(ret_block, layer->lines + from, count);
        }
    }
    for (size_t at = 0; at < WATCHED && *whole >> at != 0; at++) {
        const struct layer *layer = layer_of(parts, at, index);

        if (layer == NULL ||
            ((*whole >> at & 1) != 0 &&
             memcmp(ret_block, layer->lines + from, bytes) != 0)) {
            *whole &= ~((uint64_t)1 << at);
        }
    }
}

/* Returns whether one of the parts from WATCHED on has all bits of the union.
 * ONES is the number of these bits. */
static bool
has_all(const struct parts *parts, uint32_t index, uint64_t ones)
{
    for (size_t at = WATCHED; at <= parts->count; at++) {
        const struct layer *layer = layer_of(parts, at, index);

        if (layer != NULL &&
            layer_ops_of(layer)->ones(layer->lines, lines_of(layer)) == ones) {
            return true;
        }
    }
    return false;
}

/* Counts the bits of the union of all layers INDEX, and finds out whether one
 * layer has all of them. */
static uint64_t
count_union(const struct parts *parts, uint32_t index, const struct layer *like,
            bool *ret_one_has_all)
{
    struct line block[BLOCK_LINES];
    size_t total = lines_of(like);
    uint64_t whole = UINT64_MAX;
    uint64_t ones = 0;

    if (parts->count + 1 < WATCHED) {
        whole = ((uint64_t)1 << (parts->count + 1)) - 1;
    }
    for (size_t from = 0; from < total; from += BLOCK_LINES) {
        size_t left = total - from;
        size_t count = left < BLOCK_LINES ? left : BLOCK_LINES;

        unite_block(parts, index, from, count, block, &whole);
        ones += layer_ops_of(like)->ones(block, count);
    }
    *ret_one_has_all = whole != 0 || has_all(parts, index, ones);
    return ones;
}

static double
power(double base, uint64_t exponent)
{
    double result = 1;

    for (; exponent != 0; exponent /= 2) {
        if (exponent % 2 != 0) {
            result *= base;
        }
        base *= base;
    }
    return result;
}

/* Returns the number n of items in [LEAST, MOST] that best explains ONES set
 * bits: the least n for which n + 1/2 items leave at most as many bits clear as
 * there are. Both sides of the comparison are squared, so that the exponent is
 * a whole number. */
static uint64_t
estimate(const struct layer *layer, uint64_t ones, uint64_t least,
         uint64_t most)
{
    double bits = (double)lines_of(layer) * BLOOM_LINE_BYTES * 8;
    double clear = bits - (double)ones;
    double stays = 1 - 1 / (64 * (double)layer->line_count);

    while (least < most) {
        uint64_t middle = least + (most - least) / 2;

        if (bits * bits * power(stays, 2 * middle + 1) <= clear * clear) {
            most = middle;
        } else {
            least = middle + 1;
        }
    }
    return least;
}

/* Returns the items of all deletable layers INDEX together, less the whole
 * items in the sum of their refunds. *ret_refund is that sum, in bits. */
static uint64_t
sum_items(const struct parts *parts, uint32_t index, const struct layer *like,
          uint64_t *ret_refund)
{
    uint32_t bits = like->stripes * 8;
    uint64_t refund = 0;
    uint64_t items = 0;

    for (size_t at = 0; at <= parts->count; at++) {
        const struct layer *layer = layer_of(parts, at, index);

        if (layer != NULL && (at == 0 || part_at(parts, at) != parts->into)) {
            items = items < BLOOM_CAPACITY_MAX - layer->items
                        ? items + layer->items
                        : BLOOM_CAPACITY_MAX;
            refund += layer->refund;
        }
    }
    *ret_refund = refund;
    return items - refund / bits;
}

/* Returns the items of one layer of the union, by the rule of bloom_merge(). */
static uint64_t
count_items(const struct parts *parts, uint32_t index, const struct layer *like)
{
    bool one_has_all = false;
    uint64_t ones = count_union(parts, index, like, &one_has_all);
    uint64_t largest = 0;
    uint64_t all = 0;

    for (size_t at = 0; at <= parts->count; at++) {
        const struct layer *layer = layer_of(parts, at, index);

        if (layer == NULL || (at > 0 && part_at(parts, at) == parts->into)) {
            continue;
        }
        largest = largest < layer->items ? layer->items : largest;
        all = all < BLOOM_CAPACITY_MAX - layer->items ? all + layer->items
                                                      : BLOOM_CAPACITY_MAX;
    }
    if (one_has_all) {
        return largest;
    }
    return estimate(like, ones, largest + 1, all);
}

/* Returns whether the union keeps the capacity of each layer. Every layer but
 * the newest is full in the longest chain, and stays so. */
static bool
fits(struct parts *parts, const struct bloom *longest)
{
    for (uint32_t i = 0; i < longest->count; i++) {
        const struct layer *like = &bloom_layers_const(longest)[i];
        uint64_t refund;
        uint64_t items = like->kind == BLOOM_DELETABLE
                             ? sum_items(parts, i, like, &refund)
                             : count_items(parts, i, like);

        if (items > like->capacity && !parts->over) {
            return false;
        }
        parts->newest_items = items < like->capacity ? items : like->capacity;
    }
    return true;
}

/* ---- doing it ------------------------------------------------------------ */

/* Appends empty layers up to the length of the longest chain, or none. */
static enum bloom_status
lengthen(struct bloom *bloom, const struct bloom *longest,
         const struct bloom_env *env)
{
    uint32_t count = bloom->count;
    bool has_slots = plan_slots(longest->count) == plan_slots(count);
    struct bloom_chain *chain = bloom->chain;
    struct bloom_params params = { .struct_size = sizeof(params) };

    CHECK(count < longest->count);
    bloom_get_params(longest, &params);
    if (!plan_stored_fits(&params, longest->count, bloom_size(longest),
                          env->size_limit_bytes)) {
        return BLOOM_LIMIT;
    }
    if (!has_slots) {
        chain = bloom_chain_new(bloom, longest->count, env);
        if (chain == NULL) {
            return BLOOM_NOMEM;
        }
    }
    for (; count < longest->count; count++) {
        const struct layer *like = &longest->chain->layers[count];
        struct geometry geometry = { .lines = like->line_count,
                                     .stripes = like->stripes,
                                     .log2 = like->log2 };

        if (!layer_init(&chain->layers[count], bloom_kind(bloom),
                        like->capacity, geometry, env)) {
            goto fail_layers;
        }
        chain->layers[count].items =
            like->kind == BLOOM_DELETABLE ? 0 : like->items;
    }
    if (bloom_kind(bloom) == BLOOM_NATIVE) {
        chain->layers[bloom->count - 1].items =
            chain->layers[bloom->count - 1].capacity;
    }
    chain->capacity = longest->chain->capacity;
    chain->size_bytes = longest->chain->size_bytes;
    bloom_set_chain(bloom, chain, count, env);
    return BLOOM_OK;

fail_layers:
    while (count-- > bloom->count) {
        layer_fini(&chain->layers[count], env);
    }
    if (!has_slots) {
        bloom_chain_free(bloom, chain, longest->count, env);
    }
    return BLOOM_NOMEM;
}

/* Does the same as or_lines(), but writes only lines that change: untouched
 * memory, and memory that a save shares, stays as it is. */
static void
add_lines(struct line *to, const struct line *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t missing = 0;

        for (unsigned w = 0; w < 8; w++) {
            missing |= from[i].words[w] & ~to[i].words[w];
        }
        if (missing != 0) {
            or_lines(&to[i], &from[i], 1);
        }
    }
}

/* Counts before the parts are united, and then changes the layers. */
static void
unite_deletable(const struct parts *parts)
{
    struct bloom *into = parts->into;
    struct bloom_extra *extra = bloom_extra_of(into);

    CHECK(extra != NULL);
    extra->older_items = 0;
    for (uint32_t i = 0; i < into->count; i++) {
        struct layer *layer = &bloom_layers(into)[i];
        uint32_t bits = layer->stripes * 8;
        uint64_t refund;

        layer->items = sum_items(parts, i, layer, &refund);
        if (layer->items > layer->capacity) {
            layer->items = layer->capacity;
        }
        layer->refund = (uint16_t)(refund % bits);
        extra->undone -= refund / bits;
        extra->older_items += i + 1U < into->count ? layer->items : 0;
    }
    for (size_t at = 1; at <= parts->count; at++) {
        const struct bloom *part = part_at(parts, at);
        const struct bloom_extra *other = bloom_extra_of(part);

        for (uint32_t i = 0; part != into && i < part->count; i++) {
            collision_unite(&bloom_layers(into)[i],
                            &bloom_layers_const(part)[i]);
        }
        extra->undone += part != into && other != NULL ? other->undone : 0;
    }
}

static void
unite(const struct parts *parts)
{
    struct bloom *into = parts->into;

    for (size_t at = 1; at <= parts->count; at++) {
        const struct bloom *part = part_at(parts, at);

        for (uint32_t i = 0; part != into && i < part->count; i++) {
            const struct layer *from = &bloom_layers_const(part)[i];

            add_lines(bloom_layers(into)[i].lines, from->lines, lines_of(from));
        }
    }
    bloom_layers(into)[into->count - 1].items = parts->newest_items;
}

static enum bloom_status
merge(struct parts parts, const struct bloom_env *env)
{
    struct bloom *bloom = parts.into;
    const struct bloom *longest;
    enum bloom_status status = BLOOM_OK;

    env = env_or_default(env);
    if (!find_longest(&parts, &longest) || foreign_is(bloom_kind(bloom))) {
        return BLOOM_INVALID;
    }
    if (bloom_kind(bloom) == BLOOM_AGEING) {
        return ageing_merge(bloom, env, parts.others, parts.count, parts.over);
    }
    if (!fits(&parts, longest)) {
        return BLOOM_OVERFULL;
    }
    if (bloom->count < longest->count) {
        status = lengthen(bloom, longest, env);
    }
    if (status == BLOOM_OK && bloom_kind(bloom) == BLOOM_DELETABLE) {
        unite_deletable(&parts);
    } else if (status == BLOOM_OK) {
        unite(&parts);
    }
    if (status == BLOOM_OK) {
        bloom_check(bloom);
    }
    return status;
}

enum bloom_status
bloom_merge(struct bloom *bloom, const struct bloom_env *env,
            const struct bloom *const *others, size_t count)
{
    return merge(
        (struct parts){ .into = bloom, .others = others, .count = count }, env);
}

enum bloom_status
bloom_merge_over(struct bloom *bloom, const struct bloom_env *env,
                 const struct bloom *const *others, size_t count)
{
    return merge(
        (struct parts){
            .into = bloom, .others = others, .count = count, .over = true },
        env);
}
