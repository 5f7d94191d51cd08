/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The striped layer, in plain C and for AVX2; layer.h has the layout. The
 * foreign layers are here, too; collision.c has the deletable ones. The table
 * of operations is written once, before threads start.
 *
 * A lookup and a repeated add do not write, so they leave cache lines shared.
 */
#include "core/layer.h"

#include "base/err.h"
#include "core/collision.h"
#include "core/foreign.h"

#include <stddef.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define INLINE __attribute__((always_inline)) static inline

/* How many bits of an item are prefetched in foreign kinds. Most misses end at
 * the second bit. */
enum { PREFETCHED_BITS = 8 };

_Static_assert(sizeof(struct layer) <= 48, "a layer has to stay small");

/* ---- plain C ------------------------------------------------------------- */

/* The CPU cannot predict the answer, so a layer of one stripe returns it
 * without a branch. */
INLINE bool
contains_one(const struct layer *layer, struct bloom_hash hash)
{
    const struct line *stripe = layer->lines;
    uint64_t line_count = layer->line_count;
    bool found =
        line_contains(&stripe[mulhi64(hash.high, line_count)], hash.low);
    uint32_t left = layer->stripes;

    if (left == 1) {
        return found;
    }
    while (found && --left > 0) {
        hash = next_stripe(hash);
        stripe += line_count;
        found =
            line_contains(&stripe[mulhi64(hash.high, line_count)], hash.low);
    }
    return found;
}

INLINE bool
add_one(const struct layer *layer, struct bloom_hash hash)
{
    struct line *stripe = layer->lines;
    uint64_t line_count = layer->line_count;
    bool changed = false;

    for (uint32_t left = layer->stripes;; hash = next_stripe(hash)) {
        struct line *line = &stripe[mulhi64(hash.high, line_count)];

        if (!line_contains(line, hash.low)) {
            for (unsigned i = 0; i < 8; i++) {
                line_set(&line->words[i], line_bit(hash.low, i));
            }
            changed = true;
        }
        if (--left == 0) {
            return changed;
        }
        stripe += line_count;
    }
}

INLINE void
prefetch_one(const struct layer *layer, struct bloom_hash hash,
             uint32_t stripes)
{
    const struct line *stripe = layer->lines;
    uint64_t line_count = layer->line_count;

    for (;;) {
        /* Into the second-level cache, which allows more fetches at a time. */
        __builtin_prefetch(&stripe[mulhi64(hash.high, line_count)], 0, 2);
        if (--stripes == 0) {
            return;
        }
        stripe += line_count;
        hash.high *= LINE_STEP;
    }
}

static void
striped_touch(const struct layer *layer, struct bloom_hash hash)
{
    struct line *stripe = layer->lines;

    for (uint32_t i = 0; i < layer->stripes; i++) {
        line_touch(stripe[mulhi64(hash.high, layer->line_count)].words);
        stripe += layer->line_count;
        hash.high *= LINE_STEP;
    }
}

static bool
striped_contains(const struct layer *layer, struct bloom_hash hash)
{
    return contains_one(layer, hash);
}

static bool
striped_add(struct layer *layer, struct bloom_hash hash)
{
    return add_one(layer, hash);
}

static void
striped_prefetch(const struct layer *layer, struct bloom_hash hash,
                 uint32_t stripes)
{
    prefetch_one(layer, hash, stripes);
}

/* The loops use a copy of the layer, which no store can alias, so that it stays
 * in registers. */
static void
striped_contains_many(const struct layer *layer,
                      const struct bloom_hash *hashes, size_t count,
                      bool *ret_found)
{
    const struct layer copy = *layer;

    for (size_t i = 0; i < count; i++) {
        ret_found[i] = contains_one(&copy, hashes[i]);
    }
}

static size_t
striped_add_many(struct layer *layer, const struct bloom_hash *hashes,
                 size_t count, bool *ret_added)
{
    const struct layer copy = *layer;

    size_t added = 0;

    for (size_t i = 0; i < count; i++) {
        ret_added[i] = add_one(&copy, hashes[i]);
        added += ret_added[i];
    }
    return added;
}

static void
striped_prefetch_many(const struct layer *layer,
                      const struct bloom_hash *hashes, size_t count,
                      uint32_t stripes)
{
    const struct layer copy = *layer;

    for (size_t i = 0; i < count; i++) {
        prefetch_one(&copy, hashes[i], stripes);
    }
}

static uint64_t
striped_bytes(const struct layer *layer)
{
    return layer->line_count * layer->stripes * BLOOM_LINE_BYTES;
}

INLINE uint64_t
count_ones(const struct line *lines, size_t count)
{
    uint64_t ones = 0;

    for (size_t i = 0; i < count; i++) {
        for (unsigned w = 0; w < 8; w++) {
            ones += (uint64_t)__builtin_popcountll(lines[i].words[w]);
        }
    }
    return ones;
}

static uint64_t
striped_ones(const struct line *lines, size_t count)
{
    return count_ones(lines, count);
}

/* Sums are exact: a product of counts is a whole number of at most 64^8 = 2^48.
 */
INLINE double
sum_products(const struct line *lines, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t product = 1;

        for (unsigned w = 0; w < 8; w++) {
            product *= (uint64_t)__builtin_popcountll(lines[i].words[w]);
        }
        sum += (double)product * 0x1p-48;
    }
    return sum;
}

static double
striped_products(const struct line *lines, size_t count)
{
    return sum_products(lines, count);
}

#define PORTABLE_OPS                                                           \
    {                                                                          \
        .contains = striped_contains, .add = striped_add,                      \
        .prefetch = striped_prefetch, .contains_many = striped_contains_many,  \
        .add_many = striped_add_many, .prefetch_many = striped_prefetch_many,  \
        .touch = striped_touch, .bytes = striped_bytes, .ones = striped_ones,  \
        .products = striped_products,                                          \
    }

static const struct layer_ops portable_ops = PORTABLE_OPS;

/* ---- the foreign kinds --------------------------------------------------- */

static uint64_t
bits_lines(uint64_t bits)
{
    const uint64_t line_bits = UINT64_C(8) * BLOOM_LINE_BYTES;

    return bits / line_bits + (bits % line_bits != 0);
}

static uint64_t
bits_bytes(const struct layer *layer)
{
    return bits_lines(layer->line_count) * BLOOM_LINE_BYTES;
}

/* Defines the operations of one kind; POSITION is an expression of `hash` and
 * `i`. They are written out for each kind, so that no bit costs a call. */
#define DEFINE_BITS(NAME, POSITION)                                            \
    static bool NAME##_contains(const struct layer *layer,                     \
                                struct bloom_hash hash)                        \
    {                                                                          \
        const uint64_t *words = layer->lines->words;                           \
                                                                               \
        for (uint32_t i = 0; i < layer->stripes; i++) {                        \
            uint64_t at = POSITION;                                            \
                                                                               \
            if ((line_word(&words[at / 64]) >> at % 64 & 1) == 0) {            \
                return false;                                                  \
            }                                                                  \
        }                                                                      \
        return true;                                                           \
    }                                                                          \
                                                                               \
    static bool NAME##_add(struct layer *layer, struct bloom_hash hash)        \
    {                                                                          \
        uint64_t *words = layer->lines->words;                                 \
        bool changed = false;                                                  \
                                                                               \
        for (uint32_t i = 0; i < layer->stripes; i++) {                        \
            uint64_t at = POSITION;                                            \
            uint64_t bit = (uint64_t)1 << at % 64;                             \
                                                                               \
            if ((words[at / 64] & bit) == 0) {                                 \
                line_set(&words[at / 64], bit);                                \
                changed = true;                                                \
            }                                                                  \
        }                                                                      \
        return changed;                                                        \
    }                                                                          \
                                                                               \
    static void NAME##_prefetch(const struct layer *layer,                     \
                                struct bloom_hash hash, uint32_t steps)        \
    {                                                                          \
        const uint64_t *words = layer->lines->words;                           \
                                                                               \
        for (uint32_t i = 0; i < steps && i < PREFETCHED_BITS; i++) {          \
            __builtin_prefetch(&words[(POSITION) / 64], 0, 2);                 \
        }                                                                      \
    }                                                                          \
                                                                               \
    static void NAME##_touch(const struct layer *layer,                        \
                             struct bloom_hash hash)                           \
    {                                                                          \
        uint64_t *words = layer->lines->words;                                 \
                                                                               \
        for (uint32_t i = 0; i < layer->stripes; i++) {                        \
            line_touch(&words[(POSITION) / 64]);                               \
        }                                                                      \
    }                                                                          \
                                                                               \
    static void NAME##_contains_many(const struct layer *layer,                \
                                     const struct bloom_hash *hashes,          \
                                     size_t count, bool *ret_found)            \
    {                                                                          \
        for (size_t i = 0; i < count; i++) {                                   \
            ret_found[i] = NAME##_contains(layer, hashes[i]);                  \
        }                                                                      \
    }                                                                          \
                                                                               \
    static size_t NAME##_add_many(struct layer *layer,                         \
                                  const struct bloom_hash *hashes,             \
                                  size_t count, bool *ret_added)               \
    {                                                                          \
        size_t added = 0;                                                      \
                                                                               \
        for (size_t i = 0; i < count; i++) {                                   \
            ret_added[i] = NAME##_add(layer, hashes[i]);                       \
            added += ret_added[i];                                             \
        }                                                                      \
        return added;                                                          \
    }                                                                          \
                                                                               \
    static void NAME##_prefetch_many(const struct layer *layer,                \
                                     const struct bloom_hash *hashes,          \
                                     size_t count, uint32_t steps)             \
    {                                                                          \
        for (size_t i = 0; i < count; i++) {                                   \
            NAME##_prefetch(layer, hashes[i], steps);                          \
        }                                                                      \
    }

#define BITS_OPS(NAME)                                                         \
    {                                                                          \
        .contains = NAME##_contains, .add = NAME##_add,                        \
        .prefetch = NAME##_prefetch, .contains_many = NAME##_contains_many,    \
        .add_many = NAME##_add_many, .prefetch_many = NAME##_prefetch_many,    \
        .touch = NAME##_touch, .bytes = bits_bytes, .ones = striped_ones,      \
        .products = striped_products,                                          \
    }

DEFINE_BITS(redisbloom,
            redisbloom_position(hash, i, layer->line_count, layer->log2))
DEFINE_BITS(valkeybloom, valkeybloom_position(hash, i, layer->line_count))

struct layer_ops layer_ops[BLOOM_KINDS] = {
    [BLOOM_NATIVE] = PORTABLE_OPS,
    [BLOOM_REDISBLOOM] = BITS_OPS(redisbloom),
    [BLOOM_VALKEYBLOOM] = BITS_OPS(valkeybloom),
    [BLOOM_DELETABLE] = { .contains = collision_contains,
                          .add = collision_add,
                          .prefetch = collision_prefetch,
                          .contains_many = collision_contains_many,
                          .add_many = collision_add_many,
                          .prefetch_many = collision_prefetch_many,
                          .touch = collision_touch,
                          .bytes = collision_layer_bytes,
                          .ones = striped_ones,
                          .products = striped_products },
    [BLOOM_AGEING] = PORTABLE_OPS,
};

/* ---- AVX2 ---------------------------------------------------------------- */

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

typedef uint64_t half_line __attribute__((vector_size(32), may_alias));

/* Computes the item's bit in each word, 4 words at a time. A vector shift of 64
 * or more is undefined, hence the mask. */
#define BITS_LEFT(low)  ((((half_line){ 0 } + (low)) >> left_shift) & 63)
#define BITS_RIGHT(low) ((((half_line){ 0 } + (low)) >> right_shift) & 63)

static const half_line left_shift = { 16, 22, 28, 34 };
static const half_line right_shift = { 40, 46, 52, 58 };
static const half_line ones = { 1, 1, 1, 1 };

AVX2 INLINE bool
avx2_line_contains(const void *line, uint64_t low)
{
    const half_line *half = line;
    half_line all = (half[0] >> BITS_LEFT(low)) & (half[1] >> BITS_RIGHT(low));

    return _mm256_testc_si256((__m256i)all, (__m256i)ones);
}

AVX2 INLINE bool
avx2_contains_one(const struct layer *layer, struct bloom_hash hash)
{
    const struct line *stripe = layer->lines;
    uint64_t line_count = layer->line_count;
    bool found =
        avx2_line_contains(&stripe[mulhi64(hash.high, line_count)], hash.low);
    uint32_t left = layer->stripes;

    if (left == 1) {
        return found;
    }
    while (found && --left > 0) {
        hash = next_stripe(hash);
        stripe += line_count;
        found = avx2_line_contains(&stripe[mulhi64(hash.high, line_count)],
                                   hash.low);
    }
    return found;
}

AVX2 INLINE bool
avx2_add_one(const struct layer *layer, struct bloom_hash hash)
{
    struct line *stripe = layer->lines;
    uint64_t line_count = layer->line_count;
    bool changed = false;

    for (uint32_t left = layer->stripes;; hash = next_stripe(hash)) {
        void *line = &stripe[mulhi64(hash.high, line_count)];
        half_line *half = line;
        half_line bits_left = ones << BITS_LEFT(hash.low);
        half_line bits_right = ones << BITS_RIGHT(hash.low);
        half_line missing = (bits_left & ~half[0]) | (bits_right & ~half[1]);

        if (!_mm256_testz_si256((__m256i)missing, (__m256i)missing)) {
            half[0] |= bits_left;
            half[1] |= bits_right;
            changed = true;
        }
        if (--left == 0) {
            return changed;
        }
        stripe += line_count;
    }
}

AVX2 static bool
avx2_contains(const struct layer *layer, struct bloom_hash hash)
{
    return avx2_contains_one(layer, hash);
}

AVX2 static bool
avx2_add(struct layer *layer, struct bloom_hash hash)
{
    return avx2_add_one(layer, hash);
}

AVX2 static void
avx2_contains_many(const struct layer *layer, const struct bloom_hash *hashes,
                   size_t count, bool *ret_found)
{
    const struct layer copy = *layer;

    for (size_t i = 0; i < count; i++) {
        ret_found[i] = avx2_contains_one(&copy, hashes[i]);
    }
}

AVX2 static size_t
avx2_add_many(struct layer *layer, const struct bloom_hash *hashes,
              size_t count, bool *ret_added)
{
    const struct layer copy = *layer;

    size_t added = 0;

    for (size_t i = 0; i < count; i++) {
        ret_added[i] = avx2_add_one(&copy, hashes[i]);
        added += ret_added[i];
    }
    return added;
}

/* A CPU with AVX2 also counts bits in one instruction. */
__attribute__((target("popcnt"))) static uint64_t
popcnt_ones(const struct line *lines, size_t count)
{
    return count_ones(lines, count);
}

__attribute__((target("popcnt"))) static double
popcnt_products(const struct line *lines, size_t count)
{
    return sum_products(lines, count);
}

static const struct layer_ops avx2_ops = {
    .contains = avx2_contains,
    .add = avx2_add,
    .prefetch = striped_prefetch,
    .contains_many = avx2_contains_many,
    .add_many = avx2_add_many,
    .prefetch_many = striped_prefetch_many,
    .touch = striped_touch,
    .bytes = striped_bytes,
    .ones = popcnt_ones,
    .products = popcnt_products,
};

#endif

/* ---- life ---------------------------------------------------------------- */

const char *
layer_select_cpu(bool force_portable)
{
#if defined(__x86_64__)
    if (!force_portable && __builtin_cpu_supports("avx2")) {
        layer_ops[BLOOM_NATIVE] = avx2_ops;
        layer_ops[BLOOM_AGEING] = avx2_ops;
        return "avx2";
    }
#else
    (void)force_portable;
#endif
    layer_ops[BLOOM_NATIVE] = portable_ops;
    layer_ops[BLOOM_AGEING] = portable_ops;
    return "portable";
}

/* A read of 32 bytes reads each word atomically, but the thread sanitizer does
 * not know that. */
const char *
layer_select_shared(void)
{
    const char *name = layer_select_cpu(LINE_SEES_RACES);

    layer_ops[BLOOM_NATIVE].add = striped_add;
    layer_ops[BLOOM_NATIVE].add_many = striped_add_many;
    layer_ops[BLOOM_AGEING].add = striped_add;
    layer_ops[BLOOM_AGEING].add_many = striped_add_many;
    return name;
}

bool
layer_geometry_bytes(uint32_t kind, struct geometry geometry,
                     uint64_t *ret_bytes)
{
    if (foreign_is(kind)) {
        *ret_bytes = bits_lines(geometry.lines) * BLOOM_LINE_BYTES;
        return geometry.lines > 0 && geometry.stripes > 0;
    }
    return kind == BLOOM_DELETABLE ? collision_bytes(geometry, ret_bytes)
                                   : sizing_bytes(geometry, ret_bytes);
}

bool
layer_init(struct layer *layer, enum bloom_kind kind, uint64_t capacity,
           struct geometry geometry, const struct bloom_env *env)
{
    uint64_t bytes;
    void *lines;

    CHECK(capacity > 0 && geometry.lines > 0 && geometry.stripes > 0);
    if (!layer_geometry_bytes(kind, geometry, &bytes) || bytes > SIZE_MAX) {
        return false;
    }
    lines = env->alloc_lines(env->ctx, (size_t)bytes);
    if (lines == NULL) {
        return false;
    }
    CHECK((uintptr_t)lines % BLOOM_LINE_BYTES == 0);
    *layer = (struct layer){ .lines = lines,
                             .line_count = geometry.lines,
                             .capacity = capacity,
                             .stripes = geometry.stripes,
                             .kind = (uint8_t)kind,
                             .log2 = (uint8_t)geometry.log2 };
    return true;
}

void
layer_fini(struct layer *layer, const struct bloom_env *env)
{
    CHECK(layer->lines != NULL);
    env->free_lines(env->ctx, layer->lines, (size_t)layer_bytes(layer));
    layer->lines = NULL;
}
