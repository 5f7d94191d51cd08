/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stored form of a filter, whole or in pieces. codec_head.c draws it. Only
 * codec_new(), codec_new_empty() and codec_load() allocate. Stored bytes are
 * hostile: nothing is assumed about them.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/codec_head.h"

/* Returns the length of the stored form. */
uint64_t codec_dump_bytes(const struct bloom *bloom);

/* Writes exactly codec_dump_bytes() bytes at RET_BYTES, aligned or not.
 * INCARNATION is a number of the caller, which codec_load() returns: the server
 * distinguishes a key from an earlier key of the same name by it. Equal filters
 * with equal incarnations have equal dumps. */
void codec_dump(const struct bloom *bloom, uint64_t incarnation,
                void *ret_bytes);

/* Does what bloom_load() does, for our own form alone, and returns the
 * incarnation too. On failure neither output is touched. */
enum bloom_status codec_load(const void *data, size_t len,
                             const struct bloom_env *env,
                             uint64_t *ret_incarnation,
                             struct bloom **ret_bloom);

/* Makes a filter from a checked head, with all lines zero, in the caller's
 * struct, which is left undefined on failure and may be moved. The caller fills
 * in the lines before it uses the filter. The head's bytes are not needed
 * afterwards. Fails with BLOOM_LIMIT, BLOOM_NOMEM. */
enum bloom_status codec_init(struct bloom *bloom, const struct codec_head *head,
                             const struct bloom_env *env);

/* Does the same for a new struct. On failure *ret_bloom is untouched. */
enum bloom_status codec_new(const struct codec_head *head,
                            const struct bloom_env *env,
                            struct bloom **ret_bloom);

/* Makes an empty filter with the properties and the first layer of a complete
 * one, as bloom_reset() leaves it. On failure *ret_bloom is untouched. Fails
 * with BLOOM_LIMIT, BLOOM_NOMEM. */
enum bloom_status codec_new_empty(const struct bloom *bloom,
                                  const struct bloom_env *env,
                                  struct bloom **ret_bloom);

/* Returns the lines of layer INDEX, to fill in, or NULL. Stored bytes that are
 * copied there need codec_to_host(), once. */
void *codec_layer_lines(struct bloom *bloom, uint32_t index, size_t *ret_bytes);

/* Copies all lines and items into a filter of codec_new(). False if the shapes
 * differ: the copy is untouched. */
bool bloom_copy_into(const struct bloom *bloom, struct bloom *copy);

/* Convert lines between the stored byte order and the machine's.
 * codec_to_host() works in place. codec_stored() returns the lines themselves
 * if both orders are the same, else a copy in SCRATCH, which has space for
 * BYTES. BYTES is a multiple of 8. */
void codec_to_host(void *lines, size_t bytes);
const void *codec_stored(const void *lines, size_t bytes, void *scratch);

/* Copies bytes into zeroed lines. Pieces of zeros are not written, so that
 * their memory stays untouched. */
void codec_fill_lines(void *lines, const void *from, size_t bytes);

/* Fills a new filter with all its stored lines, head->line_bytes bytes. */
void codec_fill(struct bloom *bloom, const void *stored_lines);
