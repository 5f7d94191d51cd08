/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The head of a stored filter: everything but its lines. codec_head.c draws it.
 * Stored bytes are hostile: nothing is assumed about them. Pure, any thread.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CODEC_VERSION = 1,
    CODEC_FIXED_BYTES = 72,
    CODEC_LAYER_BYTES = 32,
    CODEC_LAYER_BYTES_MAX = 48, /* of kind redisbloom */
    CODEC_UNDONE_BYTES = 8,
    CODEC_RING_BYTES = 24, /* of kind ageing */
    CODEC_FINGERPRINT_BYTES = 8,
    CODEC_RANGES_MAX = 256,
    CODEC_RANGE_BYTES = 16,
    CODEC_HEAD_BYTES_MAX = CODEC_FIXED_BYTES +
                           BLOOM_LAYERS_MAX * CODEC_LAYER_BYTES_MAX +
                           CODEC_RING_BYTES + CODEC_FINGERPRINT_BYTES + 8 +
                           CODEC_RANGES_MAX * CODEC_RANGE_BYTES,
    CODEC_CHECKSUM_BYTES = 8
};

/* A head as it was read. It points into the bytes that it was read from. */
struct codec_head {
    struct bloom_params params; /* stripes and lines are layer 0's, as stored */
    uint64_t incarnation;
    uint32_t layers;
    uint32_t options; /* of kind redisbloom: core/foreign.h */
    uint32_t growth;  /* of kind redisbloom: expansion in its header */
    uint64_t undone;  /* of kind deletable: core/deletable.h */
    uint64_t turn;    /* of kind ageing: of its newest generation */
    bool incomplete;  /* only `ranges` of the stream have come */
    uint64_t range_count;
    const uint8_t *ranges;
    const uint8_t *table; /* of the layers; codec_get_layer() reads it */
    size_t head_bytes;    /* the lines begin here */
    uint64_t line_bytes;  /* of all layers */
    uint64_t total_bytes; /* head, lines and checksum */
};

struct codec_layer {
    uint64_t capacity, items, lines;
    uint32_t stripes;
    uint32_t log2;              /* of kinds redisbloom and deletable; else 0 */
    uint32_t refund;            /* of kind deletable; ageing: the age; else 0 */
    double rate, bits_per_item; /* of kind redisbloom */
};

/* Reads a head. DATA has LEN bytes, at least the whole head
 * (CODEC_HEAD_BYTES_MAX are enough). Reads neither the bytes after the head nor
 * the checksum. After BLOOM_OK line_bytes and total_bytes are right; nothing
 * else is checked. On failure *ret_head is untouched. Fails with BLOOM_CORRUPT;
 * and with BLOOM_VERSION if version, kind or flags are unknown: then only the
 * last 8 bytes have a meaning, the checksum. */
enum bloom_status codec_read_head(const void *data, size_t len,
                                  struct codec_head *ret_head);

/* Reads layer INDEX < head->layers, 0 the oldest, without checks. */
void codec_get_layer(const struct codec_head *head, uint32_t index,
                     struct codec_layer *ret_layer);

/* Returns the bytes of that layer's lines. */
uint64_t codec_layer_bytes(const struct codec_head *head, uint32_t index);

/* Checks every field of the head against the others. Takes a few microseconds a
 * layer. Fails with BLOOM_CORRUPT. */
enum bloom_status codec_check_head(const struct codec_head *head);

/* Does the same, faster for many similar heads: *memo, all zero at first,
 * remembers the geometries that were acceptable. The results are the same. */
enum { CODEC_MEMO_LAYERS = 8 };
struct codec_memo {
    struct codec_known {
        uint64_t capacity, lines;
        double rate;
        uint32_t stripes;
    } layers[CODEC_MEMO_LAYERS]; /* by their place in the chain */
};
enum bloom_status codec_check_head_known(const struct codec_head *head,
                                         struct codec_memo *memo);

/* Write the fixed part of a head, from params, incarnation, layers, options and
 * incomplete, and one layer of its table. The readers of other forms make heads
 * with these, so that all filters are checked and made in one place. */
void codec_put_fixed(const struct codec_head *head, uint8_t *ret_bytes);
void codec_put_layer(uint32_t kind, uint32_t index,
                     const struct codec_layer *layer, uint8_t *ret_bytes);

/* Returns the bytes of the fixed part and of a table of so many layers. */
size_t codec_table_end(uint32_t kind, uint32_t layers);

/* Returns the bytes of the head of a complete filter. */
size_t codec_head_bytes(const struct bloom *bloom);

/* Writes the head as codec_dump() does. Returns its length, at most
 * CODEC_HEAD_BYTES_MAX. */
size_t codec_put_head(const struct bloom *bloom, uint64_t incarnation,
                      void *ret_bytes);
