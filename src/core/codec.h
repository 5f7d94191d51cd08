/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The head of a stored filter, for readers that get the lines piece by piece;
 * whoever has all bytes in memory uses bloom_load(). codec.c draws the format.
 * Nothing here allocates. The bytes are hostile: nothing is assumed of them.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CODEC_VERSION = 1,
    CODEC_FIXED_BYTES = 72,
    CODEC_LAYER_BYTES = 32,
    CODEC_HEAD_BYTES_MAX =
        CODEC_FIXED_BYTES + BLOOM_LAYERS_MAX * CODEC_LAYER_BYTES,
    CODEC_CHECKSUM_BYTES = 8
};

/* Borrows the bytes that it was read from. */
struct codec_head {
    struct bloom_params params; /* stripes and lines are layer 0's, as stored */
    uint64_t incarnation;
    uint32_t layers;
    const uint8_t *table; /* of the layers; codec_get_layer() reads it */
    size_t head_bytes;    /* the lines begin here */
    uint64_t line_bytes;  /* of all layers */
    uint64_t total_bytes; /* head, lines and checksum */
};

struct codec_layer {
    uint64_t capacity, items, lines;
    uint32_t stripes;
    uint32_t pad;
};

/* Finds out what DATA says it is. LEN bytes are there, the whole head at
 * least (CODEC_HEAD_BYTES_MAX are enough); what follows it is not looked at,
 * and neither is the checksum. After BLOOM_OK the sums hold, and nothing else
 * is checked. On failure *ret_head is untouched. Fails with BLOOM_CORRUPT, and
 * BLOOM_VERSION if version, kind or flags are not known: all that is then
 * known of the bytes is that their last 8 ought to be the checksum. */
enum bloom_status codec_read_head(const void *data, size_t len,
                                  struct codec_head *ret_head);

/* Layer INDEX < head->layers, 0 the oldest, unchecked. */
void codec_get_layer(const struct codec_head *head, uint32_t index,
                     struct codec_layer *ret_layer);

/* Checks every field of the head against what the others imply. A few
 * microseconds a layer. Fails with BLOOM_CORRUPT. */
enum bloom_status codec_check_head(const struct codec_head *head);
