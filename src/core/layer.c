/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The striped layer, in plain C and for AVX2; layer.h has the layout. The table
 * of operations is written once, before threads start.
 *
 * A lookup and a repeated add do not write, so they leave cache lines shared.
 */
#include "core/layer.h"

#include "base/err.h"

#include <stddef.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define INLINE __attribute__((always_inline)) static inline


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
                line->words[i] |= line_bit(hash.low, i);
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

#define PORTABLE_OPS                                                           \
    {                                                                          \
        .contains = striped_contains, .add = striped_add,                      \
        .prefetch = striped_prefetch, .contains_many = striped_contains_many,  \
        .add_many = striped_add_many, .prefetch_many = striped_prefetch_many,  \
        .bytes = striped_bytes, .ones = striped_ones,                          \
    }

static const struct layer_ops portable_ops = PORTABLE_OPS;

struct layer_ops layer_ops[LAYER_KINDS] = { [LAYER_STRIPED] = PORTABLE_OPS };

/* ---- AVX2 ---------------------------------------------------------------- */

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

typedef uint64_t half_line __attribute__((vector_size(32), may_alias));

/* The bit of each word, 4 words at a time. A vector shift of 64 or more is
 * undefined, hence the mask. */
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

static const struct layer_ops avx2_ops = {
    .contains = avx2_contains,
    .add = avx2_add,
    .prefetch = striped_prefetch,
    .contains_many = avx2_contains_many,
    .add_many = avx2_add_many,
    .prefetch_many = striped_prefetch_many,
    .bytes = striped_bytes,
    .ones = popcnt_ones,
};

#endif

/* ---- life ---------------------------------------------------------------- */

const char *
layer_select_cpu(bool force_portable)
{
#if defined(__x86_64__)
    if (!force_portable && __builtin_cpu_supports("avx2")) {
        layer_ops[LAYER_STRIPED] = avx2_ops;
        return "avx2";
    }
#else
    (void)force_portable;
#endif
    layer_ops[LAYER_STRIPED] = portable_ops;
    return "portable";
}

bool
layer_init(struct layer *layer, uint64_t capacity, struct geometry geometry,
           const struct bloom_env *env)
{
    uint64_t bytes;
    void *lines;

    CHECK(capacity > 0 && geometry.lines > 0 && geometry.stripes > 0);
    if (!sizing_bytes(geometry, &bytes) || bytes > SIZE_MAX) {
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
                             .kind = LAYER_STRIPED };
    return true;
}

void
layer_fini(struct layer *layer, const struct bloom_env *env)
{
    CHECK(layer->lines != NULL);
    env->free_lines(env->ctx, layer->lines, (size_t)layer_bytes(layer));
    layer->lines = NULL;
}
