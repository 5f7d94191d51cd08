/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The layer of a deletable filter (core/deletable.h): the native layout with a
 * collision map (Rothenberg, Macapuna, Verdi, Magalhaes: "The Deletable Bloom
 * Filter: A New Member of the Bloom Family", IEEE Communications Letters 14,
 * 2010). A region is one bit position in R = 1, 2, 4 or 8 successive words of a
 * line. It is collided once an add has found a bit in it set already, and stays
 * so. A deletion clears the item's bits outside of collided regions, which are
 * its own, so no other item is lost.
 *
 * A stripe is a row of blocks. A block has R lines, and one line with their
 * collision words. A lookup does not need those words, so it reads as many
 * lines as in a native layer.
 *
 *   block    [ line 0 ] ... [ line R-1 ][ collision words of line 0, 1 ... ]
 *   word i of line j: collision word j (8 / R) + i / R
 */
#pragma once

#include "core/line.h"
#include "core/sizing.h"

enum { COLLISION_LOG2_MAX = 3 /* the largest log2 of the words of a region */ };

/* Returns whether a region may have so many words. */
static inline bool
collision_is_region(uint64_t region)
{
    return region > 0 && region <= 1U << COLLISION_LOG2_MAX &&
           (region & (region - 1)) == 0;
}

/* The lines that a change is applied to: those in pieces that were copied
 * before POSITION. */
struct collision_scope {
    const uint64_t *pieces; /* positions of the layer's pieces; NULL: all */
    size_t piece_bytes;
    uint64_t position;
};

/* Computes the bytes of a layer. False if they exceed INT64_MAX. */
bool collision_bytes(struct geometry geometry, uint64_t *ret_bytes);

/* Returns the bytes of a piece of the layer: as many whole blocks as fit into
 * MOST bytes. */
size_t collision_piece_bytes(const struct layer *layer, size_t most);

/* Sets the item's bits, and marks those that are set already. Returns whether
 * one of them was clear. */
bool collision_mark(struct layer *layer, struct bloom_hash hash,
                    const struct collision_scope *scope);

/* Clears the item's bits outside of collided regions. Returns how many it
 * cleared. */
uint16_t collision_clear(struct layer *layer, struct bloom_hash hash,
                         const struct collision_scope *scope);

/* Unites the layer FROM with INTO, which has the same shape. INTO then has the
 * bits and collisions of both, and a collision where both have a bit. Leaves
 * the counts of INTO as they are. */
void collision_unite(struct layer *into, const struct layer *from);

/* The operations of struct layer_ops. */
bool collision_contains(const struct layer *layer, struct bloom_hash hash);
bool collision_add(struct layer *layer, struct bloom_hash hash);
void collision_prefetch(const struct layer *layer, struct bloom_hash hash,
                        uint32_t stripes);
void collision_contains_many(const struct layer *layer,
                             const struct bloom_hash *hashes, size_t count,
                             bool *ret_found);
size_t collision_add_many(struct layer *layer, const struct bloom_hash *hashes,
                          size_t count, bool *ret_added);
void collision_prefetch_many(const struct layer *layer,
                             const struct bloom_hash *hashes, size_t count,
                             uint32_t stripes);
void collision_touch(const struct layer *layer, struct bloom_hash hash);
uint64_t collision_layer_bytes(const struct layer *layer);
