/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stored form of a filter in pieces, for who has not all of its bytes in
 * memory; whoever has uses bloom_dump() and bloom_load(). codec.c draws the
 * format. Nothing but codec_new() allocates. What is read is hostile: nothing
 * is assumed of it.
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

/* The same for many heads that are alike: *memo, all zero at first, keeps the
 * geometries that were found acceptable, and what it knows is not computed
 * again. It changes no answer. */
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

/* Makes a filter of the shape that a checked head gives, with all lines zero:
 * it is not one before the lines are filled in. The head's bytes are not
 * needed afterwards. On failure *ret_bloom is untouched. Fails with
 * BLOOM_LIMIT, BLOOM_NOMEM. */
enum bloom_status codec_new(const struct codec_head *head,
                            const struct bloom_env *env,
                            struct bloom **ret_bloom);

/* The lines of layer INDEX, to fill in: as bloom_layer_lines(). Who puts
 * stored bytes there calls codec_to_host() on them, once. */
void *codec_layer_lines(struct bloom *bloom, uint32_t index, size_t *ret_bytes);

/* Makes a filter that codec_new() made of the same shape equal to another one,
 * whatever was filled in. False: it is of another shape, and untouched. */
bool bloom_copy_into(const struct bloom *bloom, struct bloom *copy);

/* Lines between the stored byte order and the machine's. codec_stored() gives
 * them as stored: the lines themselves where both are the same, else a copy in
 * SCRATCH, which has room for BYTES. BYTES is a multiple of 8. */
void codec_to_host(void *lines, size_t bytes);
const void *codec_stored(const void *lines, size_t bytes, void *scratch);

/* Fills a new filter with all its stored lines, head->line_bytes of them. */
void codec_fill(struct bloom *bloom, const void *stored_lines);

/* The head as bloom_dump() writes it. Returns its length, at most
 * CODEC_HEAD_BYTES_MAX. */
size_t codec_put_head(const struct bloom *bloom, uint64_t incarnation,
                      void *ret_bytes);
