/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Deletable filters: XXH3 and the sizes of native ones, and layers with a
 * collision map (core/collision.h). Deleting an item loses no other one, if
 * only items are deleted that were added and not deleted since.
 *
 * Adding an item that the filter seems to have marks its regions in the newest
 * layer that has it: their bits may belong to another item. An item is deleted
 * only if exactly one layer has it: if two have it, nobody knows to which one
 * it was added.
 *
 * Collisions stay, so in the long run deletions clear fewer bits than adds have
 * set. So a layer counts bits: an add costs 8 x stripes, and a deletion refunds
 * what it has cleared. layer.items is this cost in items, rounded up, and
 * layer.refund is what the rounding added. bloom_extra.undone is the number of
 * deletions that layer.items does not show: the filter has items - undone
 * items. At equal cost a layer with deletions has fewer bits set than a native
 * one, so its rate is not higher. No layer is ever emptied because its count is
 * 0: an item whose add was answered 0 by chance is in the layer, and not
 * counted.
 *
 * Effects name what happened (struct deletable_done), so that the copy of a
 * filter that was made in pieces, each at a position of its own
 * (keyspace/walk.h), can be completed: an effect changes a line only if its
 * piece does not include the effect yet. A piece consists of whole blocks.
 */
#pragma once

#include "core/collision.h"
#include "core/filter.h"

enum {
    DELETABLE_REGION_DEFAULT = 2,
    DELETABLE_NEW = UINT16_MAX /* stands for no layer */
};

/* What an effect says about an item. layer: the layer that had the item, or
 * DELETABLE_NEW if it was added to the newest one. cleared: how many bits its
 * deletion cleared. */
struct deletable_done {
    uint16_t layer, cleared;
};

/* Does what bloom_delete() does. *ret_done is set only if it returns 1. */
int deletable_delete(struct bloom *bloom, struct bloom_hash hash,
                     struct deletable_done *ret_done);

/* Returns the newest layer that seems to have the item; DELETABLE_NEW if none
 * does. */
uint16_t deletable_layer_of(const struct bloom *bloom, struct bloom_hash hash);

/* Do once more what an effect says. position is where the effect ends in the
 * log; it matters only for a filter with bloom_extra.pieces. If the filter
 * cannot have done that, deletable_add_again() returns BLOOM_INVALID, and
 * deletable_delete_again() false. */
enum bloom_status deletable_add_again(struct bloom *bloom,
                                      const struct bloom_env *env,
                                      struct bloom_hash hash,
                                      struct deletable_done done,
                                      uint64_t position);
bool deletable_delete_again(struct bloom *bloom, struct bloom_hash hash,
                            struct deletable_done done, uint64_t position);
