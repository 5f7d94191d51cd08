/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adds and deletes items; deletable.h has the rules.
 */
#include "core/deletable.h"

#include "base/err.h"
#include "core/bloom.h"
#include "core/env.h"

/* ---- items --------------------------------------------------------------- */

/* Returns the additional fields of a deletable filter. */
static struct bloom_extra *
extra_of(const struct bloom *bloom)
{
    struct bloom_extra *extra = bloom_extra_of(bloom);

    CHECK(extra != NULL && bloom_kind(bloom) == BLOOM_DELETABLE);
    return extra;
}

/* Returns the bits that an item sets. */
static uint32_t
item_bits(const struct layer *layer)
{
    return layer->stripes * 8;
}

/* Counts a deletion. */
static void
count_deleted(struct bloom *bloom, uint16_t index, uint16_t cleared)
{
    struct layer *layer = &bloom_layers(bloom)[index];
    struct bloom_extra *extra = extra_of(bloom);
    uint32_t refund = (uint32_t)layer->refund + cleared;

    extra->undone++;
    if (refund >= item_bits(layer)) {
        refund -= item_bits(layer);
        CHECK(layer->items > 0);
        layer->items--;
        extra->older_items -= index + 1U < bloom->count;
        extra->undone--;
    }
    layer->refund = (uint16_t)refund;
}

uint16_t
deletable_layer_of(const struct bloom *bloom, struct bloom_hash hash)
{
    for (uint32_t i = bloom->count; i-- > 0;) {
        if (collision_contains(&bloom_layers_const(bloom)[i], hash)) {
            return (uint16_t)i;
        }
    }
    return DELETABLE_NEW;
}

int
deletable_delete(struct bloom *bloom, struct bloom_hash hash,
                 struct deletable_done *ret_done)
{
    struct layer *layers = bloom_layers(bloom);
    uint16_t found = deletable_layer_of(bloom, hash);
    uint16_t cleared;

    if (found == DELETABLE_NEW) {
        return 0;
    }
    for (uint32_t i = 0; i < found; i++) {
        if (collision_contains(&layers[i], hash)) {
            return -1;
        }
    }
    cleared = collision_clear(&layers[found], hash,
                              &(struct collision_scope){ .pieces = NULL });
    if (cleared == 0) {
        return -1;
    }
    count_deleted(bloom, found, cleared);
    *ret_done = (struct deletable_done){ .layer = found, .cleared = cleared };
    return 1;
}

int
bloom_delete(struct bloom *bloom, struct bloom_hash hash)
{
    struct deletable_done done;

    CHECK(bloom_kind(bloom) == BLOOM_DELETABLE && !bloom_is_incomplete(bloom));
    return deletable_delete(bloom, hash, &done);
}

/* ---- effects ------------------------------------------------------------- */

/* Returns the lines of a layer that an effect concerns. */
static struct collision_scope
scope_of(const struct bloom *bloom, uint32_t index, uint64_t position)
{
    const struct bloom_pieces *pieces = extra_of(bloom)->pieces;
    const struct layer *layers = bloom_layers_const(bloom);
    struct collision_scope scope = { .position = position };
    uint64_t at = 0;

    if (pieces == NULL || index >= pieces->layers) {
        return scope;
    }
    for (uint32_t i = 0; i < index; i++) {
        size_t step = collision_piece_bytes(&layers[i], pieces->most_bytes);

        at += (collision_layer_bytes(&layers[i]) + step - 1) / step;
    }
    scope.piece_bytes =
        collision_piece_bytes(&layers[index], pieces->most_bytes);
    scope.pieces = &pieces->at[at];
    return scope;
}

enum bloom_status
deletable_add_again(struct bloom *bloom, const struct bloom_env *env,
                    struct bloom_hash hash, struct deletable_done done,
                    uint64_t position)
{
    enum bloom_status status;
    struct collision_scope scope;
    uint32_t index = done.layer;

    if (done.layer == DELETABLE_NEW) {
        status = bloom_count_one(bloom, env);
        if (status != BLOOM_OK) {
            return status;
        }
        index = bloom->count - 1U;
    }
    if (index >= bloom->count) {
        return BLOOM_INVALID;
    }
    scope = scope_of(bloom, index, position);
    (void)collision_mark(&bloom_layers(bloom)[index], hash, &scope);
    return BLOOM_OK;
}

bool
deletable_delete_again(struct bloom *bloom, struct bloom_hash hash,
                       struct deletable_done done, uint64_t position)
{
    struct collision_scope scope;
    struct layer *layer;

    if (done.layer >= bloom->count) {
        return false;
    }
    layer = &bloom_layers(bloom)[done.layer];
    if (done.cleared == 0 || done.cleared > item_bits(layer) ||
        (layer->items == 0 &&
         (uint32_t)layer->refund + done.cleared >= item_bits(layer))) {
        return false;
    }
    scope = scope_of(bloom, done.layer, position);
    (void)collision_clear(layer, hash, &scope);
    count_deleted(bloom, done.layer, done.cleared);
    return true;
}
