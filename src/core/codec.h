/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stored form of a filter in pieces, for callers that do not have all of
 * its bytes in memory (others use bloom_dump() and bloom_load()). codec.c has
 * the format. Only codec_new() allocates. Stored bytes are hostile: nothing is
 * assumed about them.
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

/* Reads a head. DATA has LEN bytes, at least the whole head
 * (CODEC_HEAD_BYTES_MAX are enough). Reads neither the bytes after the head nor
 * the checksum. After BLOOM_OK the sums hold, and no other field is checked. On
 * failure *ret_head is untouched. Fails with BLOOM_CORRUPT; and with
 * BLOOM_VERSION if version, kind or flags are unknown: then only the last 8
 * bytes have a meaning, the checksum. */
enum bloom_status codec_read_head(const void *data, size_t len,
                                  struct codec_head *ret_head);

/* Reads layer INDEX < head->layers, 0 the oldest, without checks. */
void codec_get_layer(const struct codec_head *head, uint32_t index,
                     struct codec_layer *ret_layer);

/* Checks every field of the head against the others. Takes a few microseconds a
 * layer. Fails with BLOOM_CORRUPT. */
enum bloom_status codec_check_head(const struct codec_head *head);

/* Does the same, faster for many similar heads: *memo, all zero at first, keeps
 * the geometries that were acceptable. It changes no answer. */
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

/* Makes a filter from a checked head, with all lines zero; the caller fills in
 * the lines before it uses the filter. The head's bytes are not needed
 * afterwards. On failure *ret_bloom is untouched. Fails with BLOOM_LIMIT,
 * BLOOM_NOMEM. */
enum bloom_status codec_new(const struct codec_head *head,
                            const struct bloom_env *env,
                            struct bloom **ret_bloom);

/* Returns the lines of layer INDEX, to fill in, or NULL. Stored bytes that are
 * copied there need codec_to_host(), once. */
void *codec_layer_lines(struct bloom *bloom, uint32_t index, size_t *ret_bytes);

/* Copies all lines and items into a filter of codec_new(). False if the shapes
 * differ: the copy is untouched. */
bool bloom_copy_into(const struct bloom *bloom, struct bloom *copy);

/* Convert lines between the stored byte order and the machine's, in place or
 * for storing: codec_stored() returns the lines themselves if both orders are
 * the same, else a copy in SCRATCH of BYTES. BYTES is a multiple of 8. */
void codec_to_host(void *lines, size_t bytes);
const void *codec_stored(const void *lines, size_t bytes, void *scratch);

/* Fills a new filter with all its stored lines, head->line_bytes bytes. */
void codec_fill(struct bloom *bloom, const void *stored_lines);

/* Writes the head as bloom_dump() does. Returns its length, at most
 * CODEC_HEAD_BYTES_MAX. */
size_t codec_put_head(const struct bloom *bloom, uint64_t incarnation,
                      void *ret_bytes);
