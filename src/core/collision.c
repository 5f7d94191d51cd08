/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines and their collision words; collision.h has the layout.
 */
#include "core/collision.h"

enum { WORDS = 8 };

/* ---- where things are ---------------------------------------------------- */

/* Returns the lines of one stripe, collision words included. */
static uint64_t
stripe_lines(const struct layer *layer)
{
    uint64_t region = (uint64_t)1 << layer->log2;
    uint64_t blocks = (layer->line_count + region - 1) >> layer->log2;

    return blocks * (region + 1);
}

bool
collision_bytes(struct geometry geometry, uint64_t *ret_bytes)
{
    const struct layer like = { .line_count = geometry.lines,
                                .log2 = (uint8_t)geometry.log2 };
    uint64_t most = INT64_MAX / BLOOM_LINE_BYTES / 4;

    if (geometry.log2 > COLLISION_LOG2_MAX || geometry.stripes == 0 ||
        geometry.lines == 0 || geometry.lines > most / geometry.stripes) {
        return false;
    }
    *ret_bytes = stripe_lines(&like) * geometry.stripes * BLOOM_LINE_BYTES;
    return true;
}

size_t
collision_piece_bytes(const struct layer *layer, size_t most)
{
    size_t block = (((size_t)1 << layer->log2) + 1) * BLOOM_LINE_BYTES;

    return most / block * block;
}

uint64_t
collision_layer_bytes(const struct layer *layer)
{
    return stripe_lines(layer) * layer->stripes * BLOOM_LINE_BYTES;
}

/* Returns the number of a line in its stripe, collision lines included. */
static inline uint64_t
place_of_line(const struct layer *layer, uint64_t index)
{
    return index + (index >> layer->log2);
}

/* The line of an item in one stripe. */
struct spot {
    struct line *line;
    uint64_t *collided; /* the line's collision words, from word 0 on */
};

static inline struct spot
find_spot(const struct layer *layer, struct line *stripe, uint64_t high)
{
    uint64_t index = mulhi64(high, layer->line_count);
    uint64_t region = (uint64_t)1 << layer->log2;
    uint64_t in_block = index & (region - 1);
    struct line *line = &stripe[place_of_line(layer, index)];

    return (struct spot){
        line, &line[region - in_block].words[in_block * (WORDS >> layer->log2)]
    };
}

/* ---- the operations of a layer ------------------------------------------- */

static inline bool
contains_one(const struct layer *layer, struct bloom_hash hash)
{
    const struct line *stripe = layer->lines;
    uint64_t lines = stripe_lines(layer);

    for (uint32_t left = layer->stripes;; hash = next_stripe(hash)) {
        uint64_t at =
            place_of_line(layer, mulhi64(hash.high, layer->line_count));

        if (!line_contains(&stripe[at], hash.low)) {
            return false;
        }
        if (--left == 0) {
            return true;
        }
        stripe += lines;
    }
}

static inline bool
is_in(const struct collision_scope *scope, const struct layer *layer,
      const struct line *line)
{
    uint64_t at = (uint64_t)(line - layer->lines) * BLOOM_LINE_BYTES;

    return scope->pieces == NULL ||
           scope->pieces[at / scope->piece_bytes] < scope->position;
}

static inline bool
mark_spot(const struct spot *spot, const struct layer *layer, uint64_t low)
{
    uint64_t *word = spot->line->words;
    bool changed = false;

    for (unsigned i = 0; i < WORDS; i++) {
        uint64_t bit = line_bit(low, i);

        changed |= (word[i] & bit) == 0;
        spot->collided[i >> layer->log2] |= word[i] & bit;
        line_set(&word[i], bit);
    }
    return changed;
}

bool
collision_mark(struct layer *layer, struct bloom_hash hash,
               const struct collision_scope *scope)
{
    struct line *stripe = layer->lines;
    uint64_t lines = stripe_lines(layer);
    bool changed = false;

    for (uint32_t i = 0; i < layer->stripes; i++) {
        struct spot spot = find_spot(layer, stripe, hash.high);

        if (is_in(scope, layer, spot.line)) {
            changed |= mark_spot(&spot, layer, hash.low);
        }
        stripe += lines;
        hash = next_stripe(hash);
    }
    return changed;
}

uint16_t
collision_clear(struct layer *layer, struct bloom_hash hash,
                const struct collision_scope *scope)
{
    struct line *stripe = layer->lines;
    uint64_t lines = stripe_lines(layer);
    unsigned cleared = 0;

    for (uint32_t s = 0; s < layer->stripes; s++) {
        struct spot spot = find_spot(layer, stripe, hash.high);

        for (unsigned i = 0; i < WORDS && is_in(scope, layer, spot.line); i++) {
            uint64_t bit = line_bit(hash.low, i) &
                           ~spot.collided[i >> layer->log2] &
                           spot.line->words[i];

            spot.line->words[i] ^= bit;
            cleared += bit != 0;
        }
        stripe += lines;
        hash = next_stripe(hash);
    }
    return (uint16_t)cleared;
}

bool
collision_contains(const struct layer *layer, struct bloom_hash hash)
{
    return contains_one(layer, hash);
}

bool
collision_add(struct layer *layer, struct bloom_hash hash)
{
    return collision_mark(layer, hash,
                          &(struct collision_scope){ .pieces = NULL });
}

void
collision_prefetch(const struct layer *layer, struct bloom_hash hash,
                   uint32_t stripes)
{
    const struct line *stripe = layer->lines;
    uint64_t lines = stripe_lines(layer);

    for (uint32_t i = 0; i < stripes; i++) {
        uint64_t at =
            place_of_line(layer, mulhi64(hash.high, layer->line_count));

        __builtin_prefetch(&stripe[at], 0, 2);
        stripe += lines;
        hash = next_stripe(hash);
    }
}

void
collision_touch(const struct layer *layer, struct bloom_hash hash)
{
    struct line *stripe = layer->lines;
    uint64_t lines = stripe_lines(layer);

    for (uint32_t i = 0; i < layer->stripes; i++) {
        struct spot spot = find_spot(layer, stripe, hash.high);

        line_touch(spot.line->words);
        line_touch(spot.collided);
        stripe += lines;
        hash = next_stripe(hash);
    }
}

void
collision_contains_many(const struct layer *layer,
                        const struct bloom_hash *hashes, size_t count,
                        bool *ret_found)
{
    for (size_t i = 0; i < count; i++) {
        ret_found[i] = contains_one(layer, hashes[i]);
    }
}

size_t
collision_add_many(struct layer *layer, const struct bloom_hash *hashes,
                   size_t count, bool *ret_added)
{
    size_t added = 0;

    for (size_t i = 0; i < count; i++) {
        ret_added[i] = collision_add(layer, hashes[i]);
        added += ret_added[i];
    }
    return added;
}

void
collision_prefetch_many(const struct layer *layer,
                        const struct bloom_hash *hashes, size_t count,
                        uint32_t stripes)
{
    for (size_t i = 0; i < count; i++) {
        collision_prefetch(layer, hashes[i], stripes);
    }
}

void
collision_unite(struct layer *into, const struct layer *from)
{
    uint64_t lines = stripe_lines(into) * into->stripes;
    size_t region = (size_t)1 << into->log2;

    for (uint64_t at = 0; at < lines; at += region + 1) {
        struct line *to = &into->lines[at];
        const struct line *add_from = &from->lines[at];

        for (size_t i = 0; i < region * WORDS; i++) {
            uint64_t *word = &to[i / WORDS].words[i % WORDS];
            uint64_t more = add_from[i / WORDS].words[i % WORDS];
            uint64_t both = *word & more;

            if (both != 0) {
                to[region].words[i >> into->log2] |= both;
            }
            if ((more & ~*word) != 0) {
                *word |= more;
            }
        }
        for (size_t i = 0; i < WORDS; i++) {
            if ((add_from[region].words[i] & ~to[region].words[i]) != 0) {
                to[region].words[i] |= add_from[region].words[i];
            }
        }
    }
}
