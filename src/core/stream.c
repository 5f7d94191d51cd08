/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bytes of the stream are those of words in the stored, little-endian order.
 */
#include "core/stream.h"

#include <string.h>

#include "base/err.h"
#include "core/foreign.h"
#include "core/parts.h"

enum { PIECE_BYTES = 4 << 10 };

static uint64_t
layer_stream_bytes(const struct layer *layer)
{
    return foreign_is(layer->kind) ? foreign_bytes(layer->line_count)
                                   : layer_bytes(layer);
}

uint64_t
stream_bytes(const struct bloom *bloom)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < bloom->count; i++) {
        bytes += layer_stream_bytes(&bloom_layers_const(bloom)[i]);
    }
    return bytes;
}

static struct bloom_coverage *
coverage_of(const struct bloom *bloom)
{
    const struct bloom_extra *extra = bloom_extra_of(bloom);

    CHECK(extra != NULL && extra->coverage != NULL);
    return extra->coverage;
}

uint64_t
stream_missing(const struct bloom *bloom)
{
    const struct bloom_coverage *coverage;
    uint64_t missing;

    if (!bloom_is_incomplete(bloom)) {
        return 0;
    }
    coverage = coverage_of(bloom);
    missing = stream_bytes(bloom);
    for (uint64_t i = 0; i < coverage->count; i++) {
        missing -= coverage->ranges[i].to - coverage->ranges[i].from;
    }
    return missing;
}

/* Returns the layer of a byte, and makes *offset count from the beginning of
 * this layer. NULL behind the end. */
static const struct layer *
layer_at(const struct bloom *bloom, uint64_t *offset)
{
    for (uint32_t i = 0; i < bloom->count; i++) {
        const struct layer *layer = &bloom_layers_const(bloom)[i];
        uint64_t bytes = layer_stream_bytes(layer);

        if (*offset < bytes) {
            return layer;
        }
        *offset -= bytes;
    }
    return NULL;
}

uint64_t
stream_left(const struct bloom *bloom, uint64_t offset)
{
    const struct layer *layer = layer_at(bloom, &offset);

    return layer != NULL ? layer_stream_bytes(layer) - offset : 0;
}

/* Returns the place of a stored byte of a layer. */
static uint8_t *
place(const struct layer *layer, uint64_t at)
{
    const uint64_t swapped =
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : sizeof(uint64_t) - 1;

    return (uint8_t *)layer->lines + (at ^ swapped);
}

void
stream_read(const struct bloom *bloom, uint64_t offset, size_t len,
            void *ret_bytes)
{
    const struct layer *layer = layer_at(bloom, &offset);
    uint8_t *to = ret_bytes;

    CHECK(layer != NULL && len <= layer_stream_bytes(layer) - offset);
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
        memcpy(to, place(layer, offset), len);
        return;
    }
    for (size_t i = 0; i < len; i++) {
        to[i] = *place(layer, offset + i);
    }
}

/* ---- chunks -------------------------------------------------------------- */

/* A chunk that fits its layer. */
struct part {
    const struct layer *layer;
    uint64_t at; /* in the layer */
    const uint8_t *data;
    size_t len;
};

/* Returns whether the layer has bytes [from, from + len) of the chunk. */
static bool
is_there(const struct part *part, size_t from, size_t len)
{
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
        return memcmp(place(part->layer, part->at + from), part->data + from,
                      len) == 0;
    }
    for (size_t i = from; i < from + len; i++) {
        if (*place(part->layer, part->at + i) != part->data[i]) {
            return false;
        }
    }
    return true;
}

/* Unites the layer and the chunk. Pieces of zeros are not written, so that
 * their memory stays untouched. */
static void
unite(const struct part *part)
{
    static const uint8_t zeros[PIECE_BYTES];

    for (size_t from = 0; from < part->len; from += PIECE_BYTES) {
        size_t left = part->len - from;
        size_t step = left < PIECE_BYTES ? left : PIECE_BYTES;

        if (memcmp(part->data + from, zeros, step) == 0) {
            continue;
        }
        for (size_t i = from; i < from + step; i++) {
            uint8_t *byte = place(part->layer, part->at + i);

            *byte = (uint8_t)(*byte | part->data[i]);
        }
    }
}

/* Returns whether all bytes of the chunk that have come before are equal. */
static bool
repeats(const struct part *part, const struct bloom_coverage *coverage,
        uint64_t offset)
{
    uint64_t end = offset + part->len;

    for (uint64_t i = 0; i < coverage->count; i++) {
        const struct bloom_range *range = &coverage->ranges[i];
        uint64_t from = range->from > offset ? range->from : offset;
        uint64_t to = range->to < end ? range->to : end;

        if (from < to &&
            !is_there(part, (size_t)(from - offset), (size_t)(to - from))) {
            return false;
        }
    }
    return true;
}

/* Adds a range, united with those that it touches. False if there is no room
 * for one more. *ret_changed: bytes are new. */
static bool
cover(struct bloom_coverage *coverage, struct bloom_range range,
      bool *ret_changed)
{
    struct bloom_range *ranges = coverage->ranges;
    uint64_t begin = 0;
    uint64_t end;

    while (begin < coverage->count && ranges[begin].to < range.from) {
        begin++;
    }
    for (end = begin; end < coverage->count && ranges[end].from <= range.to;
         end++) {
        if (ranges[end].from <= range.from && ranges[end].to >= range.to) {
            *ret_changed = false;
            return true;
        }
        range.from =
            ranges[end].from < range.from ? ranges[end].from : range.from;
        range.to = ranges[end].to > range.to ? ranges[end].to : range.to;
    }
    if (begin == end && coverage->count == COVERAGE_RANGES_MAX) {
        return false;
    }
    memmove(&ranges[begin + 1], &ranges[end],
            (size_t)(coverage->count - end) * sizeof(*ranges));
    ranges[begin] = range;
    coverage->count = coverage->count + 1 - (end - begin);
    *ret_changed = true;
    return true;
}

/* Writes a chunk of an incomplete filter. After a failure restores the coverage
 * from a copy, so that nothing has changed. */
static enum stream_status
write_part(struct bloom *bloom, const struct bloom_env *env,
           const struct part *part, uint64_t offset, bool *ret_changed)
{
    struct bloom_coverage *coverage = coverage_of(bloom);
    const struct bloom_coverage before = *coverage;
    const struct bloom_range range = { offset, offset + part->len };

    if (!cover(coverage, range, ret_changed)) {
        return STREAM_PARTS;
    }
    if (stream_missing(bloom) == 0 && !bloom_complete(bloom, env)) {
        *coverage = before;
        *ret_changed = false;
        return STREAM_NOMEM;
    }
    unite(part);
    return STREAM_OK;
}

enum stream_status
stream_write(struct bloom *bloom, const struct bloom_env *env,
             const struct stream_chunk *chunk, bool forced, bool *ret_changed)
{
    struct part part = { .at = chunk->offset,
                         .data = chunk->data,
                         .len = chunk->len };

    *ret_changed = false;
    part.layer = layer_at(bloom, &part.at);
    if (part.layer == NULL) {
        return STREAM_NO_LAYER;
    }
    if (part.len > layer_stream_bytes(part.layer) - part.at) {
        return STREAM_TOO_LONG;
    }
    if (part.len == 0) {
        return STREAM_OK;
    }
    if (!bloom_is_incomplete(bloom)) {
        if (is_there(&part, 0, part.len)) {
            return STREAM_OK;
        }
        if (forced) {
            unite(&part);
        }
        return forced ? STREAM_OK : STREAM_DIFFERS;
    }
    if (!forced && !repeats(&part, coverage_of(bloom), chunk->offset)) {
        return STREAM_DIFFERS;
    }
    return write_part(bloom, env, &part, chunk->offset, ret_changed);
}
