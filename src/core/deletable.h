/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Deletable filters: XXH3 and the sizes of native ones, and layers with a
 * collision map (core/collision.h). Deleting an item loses no other one, if
 * only items are deleted that were added and not deleted since.
 *
 * Adding an item that the filter seems to have marks its regions in the newest
 * layer that has it: they may be another item's. An item is deleted only if
 * exactly one layer has it: of two, nobody knows which one it was added to.
 *
 * Collisions stay, so in the long run deletions clear fewer bits than adds have
 * set. So a layer counts bits: an add costs 8 x stripes, and a deletion refunds
 * what it has cleared. layer.items is that cost in items, rounded up;
 * layer.refund is what was rounded. bloom_extra.undone is the number of
 * deletions that items do not show: the filter has items - undone. At equal
 * cost a layer with deletions has fewer bits set than a native one, so its rate
 * is not higher. No layer is ever emptied because its count is 0: an item whose
 * add was answered 0 by chance is there and not counted.
 *
 * Effects name what happened (struct deletable_done), so that the copy of a
 * filter that was made in pieces, each at a position of its own
 * (keyspace/walk.h), can be completed: an effect changes a line only if its
 * piece does not include the effect yet. A piece is whole blocks.
 */
#pragma once

#include "core/collision.h"
#include "core/filter.h"

enum {
    DELETABLE_REGION_DEFAULT = 2,
    DELETABLE_NEW = UINT16_MAX /* no layer */
};

/* An item of an effect. layer: which had the item, or DELETABLE_NEW if it was
 * added to the newest. cleared: bits, by its deletion. */
struct deletable_done {
    uint16_t layer, cleared;
};

/* Does what bloom_delete() does. *ret_done is set with 1 only. */
int deletable_delete(struct bloom *bloom, struct bloom_hash hash,
                     struct deletable_done *ret_done);

/* Returns the newest layer that seems to have the item; DELETABLE_NEW if none
 * does. */
uint16_t deletable_layer_of(const struct bloom *bloom, struct bloom_hash hash);

/* Do once more what an effect says. position: behind the effect in the log, of
 * a filter with bloom_extra.pieces; else without meaning. The second returns
 * false, and the first BLOOM_INVALID, if the filter cannot have done that. */
enum bloom_status deletable_add_again(struct bloom *bloom,
                                      const struct bloom_env *env,
                                      struct bloom_hash hash,
                                      struct deletable_done done,
                                      uint64_t position);
bool deletable_delete_again(struct bloom *bloom, struct bloom_hash hash,
                            struct deletable_done done, uint64_t position);
