/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A large filter is copied in many holds, and found again in each. Its lines
 * are mostly in no cache. A hold that read them from memory would be ten times
 * as long, and a loop that waits for a lock spins. So the lines of the next
 * hold are prefetched between two holds. That uses an address from the last
 * hold, but reads nothing there: prefetching what has been freed does no harm.
 */
#include "base/prefetch.h"
#include "core/collision.h"
#include "core/filter.h"
#include "keyspace/walk.h"
#include "keyspace/walk_internal.h"

#include <errno.h>
#include <string.h>

/* A large filter that is being copied. */
struct large {
    struct key key; /* key.db is unused */
    uint32_t db_id;
    uint64_t incarnation;
    struct walk_item item;
};

/* Finds the entry again, which may have become another one. NULL: it has gone.
 * In a hold. */
static const struct entry *
find_again(const struct walk *walk, const struct large *large)
{
    const struct keyspace *ks = walk->ks;

    return db_is_live(ks, large->db_id)
               ? table_find(&ks->stripes[walk->stripe].table, large->key.hash,
                            large->key.name, large->db_id)
               : NULL;
}

/* Notes how many bytes each layer has. In a hold. */
static void
measure_layers(struct walk *walk, const struct bloom *bloom)
{
    const struct layer *layers = bloom_layers_const(bloom);
    size_t bytes;

    walk->layers = 0;
    walk->deletable = bloom_kind(bloom) == BLOOM_DELETABLE;
    buf_reset(&walk->pieces, WALK_PIECE_BYTES);
    while (bloom_layer_lines(bloom, walk->layers, &bytes) != NULL) {
        CHECK(walk->layers < BLOOM_LAYERS_MAX);
        walk->hold_bytes[walk->layers] =
            walk->deletable
                ? collision_piece_bytes(&layers[walk->layers], WALK_HOLD_BYTES)
                : WALK_HOLD_BYTES;
        walk->layer_bytes[walk->layers++] = bytes;
    }
}

/* Copies the head of a large filter. *ret_found: it is still there. */
static int
copy_head(struct walk *walk, struct large *large, bool *ret_found)
{
    unsigned stripe = keyspace_stripe_of(large->key.hash);
    const struct entry *entry;
    struct noted noted = { 0 };
    struct walk_hold hold;
    size_t len = 0;

    if (!walk_begin_hold(walk, stripe, false, &hold)) {
        return ECANCELED;
    }
    entry = find_again(walk, large);
    *ret_found = entry != NULL;
    if (entry != NULL) {
        noted = walk_describe(walk, entry,
                              entry_expiry(&walk->ks->stripes[stripe], entry));
        len = codec_put_head(&entry->bloom, entry->incarnation, walk->head);
        measure_layers(walk, &entry->bloom);
    }
    walk_end_hold(walk, &hold);
    if (!*ret_found) {
        return 0;
    }
    walk->next_lines = NULL;
    large->incarnation = noted.incarnation;
    large->item = (struct walk_item){
        .name = large->key.name,
        .form = { (const char *)walk->head, len },
    };
    return walk_put_item(walk, &noted, &large->item);
}

static size_t
smaller(uint64_t left, size_t most)
{
    return left < most ? (size_t)left : most;
}

/* Notes the position of the piece of a deletable filter that this hold copies.
 */
static void
note_piece(struct walk *walk)
{
    uint64_t position = walk_hold_position(walk);

    if (walk->deletable) {
        buf_append(&walk->pieces, &position, sizeof(position));
    }
}

/* Fetches what the next hold will copy, before it begins. */
static void
prefetch_lines(const char *lines, size_t len)
{
    for (size_t at = 0; lines != NULL && at < len; at += BLOOM_LINE_BYTES) {
        prefetch(lines + at);
    }
}

/* Copies lines of a layer to a place in the piece, in one hold. *ret_len: how
 * many bytes, 0 if the filter has gone. */
static int
copy_some(struct walk *walk, const struct large *large, uint32_t layer,
          uint64_t offset, size_t at, size_t *ret_len)
{
    const struct entry *entry;
    const char *lines = NULL;
    struct walk_hold hold;
    size_t bytes = 0;

    *ret_len = 0;
    prefetch_lines(walk->next_lines, walk->hold_bytes[layer]);
    walk->next_lines = NULL;
    if (!walk_begin_hold(walk, keyspace_stripe_of(large->key.hash), false,
                         &hold)) {
        return ECANCELED;
    }
    entry = find_again(walk, large);
    if (entry != NULL && entry->incarnation == large->incarnation) {
        lines = bloom_layer_lines(&entry->bloom, layer, &bytes);
    }
    if (lines != NULL && bytes == walk->layer_bytes[layer]) {
        *ret_len = smaller(bytes - offset, walk->hold_bytes[layer]);
        memcpy(walk->piece + at, lines + offset, *ret_len);
        walk->next_lines = lines + offset + *ret_len;
        note_piece(walk);
    }
    walk_end_hold(walk, &hold);
    return walk->pieces.failed ? ENOMEM : 0;
}

/* Copies a piece of a layer in several holds. *ret_len: the length of the
 * piece, 0 if the filter has gone. */
static int
copy_piece(struct walk *walk, const struct large *large, uint32_t layer,
           uint64_t offset, size_t *ret_len)
{
    size_t hold = walk->hold_bytes[layer];
    size_t piece = smaller(walk->layer_bytes[layer] - offset,
                           WALK_PIECE_BYTES / hold * hold);
    size_t at = 0;
    size_t len = 1;
    int error = 0;

    while (at < piece && error == 0 && len > 0) {
        error = copy_some(walk, large, layer, offset + at, at, &len);
        at += len;
    }
    *ret_len = len > 0 ? at : 0;
    return error;
}

static int
copy_layer(struct walk *walk, const struct large *large, uint32_t layer,
           bool *ret_gone)
{
    const struct walk_sink *sink = walk->sink;
    uint64_t bytes = walk->layer_bytes[layer];
    int error = 0;
    size_t len;

    for (uint64_t at = 0; at < bytes && error == 0; at += len) {
        error = copy_piece(walk, large, layer, at, &len);
        if (error == 0 && len == 0) {
            *ret_gone = true;
            return sink->gone(sink->ctx, &large->item);
        }
        if (error == 0) {
            error =
                sink->lines(sink->ctx, layer, at,
                            (struct slice){ (const char *)walk->piece, len },
                            at + len == bytes);
        }
    }
    return error;
}

/* Copies all lines of the layers that the head names. */
static int
copy_lines(struct walk *walk, const struct large *large)
{
    bool gone = false;
    int error = 0;

    for (uint32_t i = 0; i < walk->layers && error == 0 && !gone; i++) {
        error = copy_layer(walk, large, i, &gone);
    }
    if (error == 0 && !gone && walk->deletable) {
        error = walk->sink->pieces(walk->sink->ctx, WALK_HOLD_BYTES,
                                   (const uint64_t *)(void *)walk->pieces.data,
                                   walk->pieces.len / sizeof(uint64_t));
    }
    return error;
}

int
walk_copy_large(struct walk *walk, uint32_t db_id, struct slice name)
{
    struct large large = { .key = key_named(name, 0), .db_id = db_id };
    bool found;
    int error = copy_head(walk, &large, &found);

    if (error == 0 && found) {
        walk->bytes += large.item.form_bytes;
        error = copy_lines(walk, &large);
    }
    return error;
}
