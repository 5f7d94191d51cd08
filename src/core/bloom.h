/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Life and growth of the structs of core/filter.h, for codec.c, merge.c, the
 * keyspace and the server's commands; programs outside see only
 * <bloomery/bloom.h>. Invariant: bloom_size() is what plan_size() computes.
 */
#pragma once

#include <stdbool.h>

#include "core/filter.h"
#include "core/parts.h"
#include "core/plan.h"

/* Makes a filter as bloom_new() does, in the caller's struct, which is left
 * undefined on failure. The struct may be moved. */
enum bloom_status bloom_init(struct bloom *bloom,
                             const struct bloom_params *params,
                             const struct bloom_env *env);

/* Returns the name of a kind: native, redisbloom, valkeybloom, deletable
 * or ageing. */
const char *bloom_kind_name(enum bloom_kind kind);

/* Returns the error rate that a layer was made for. */
double bloom_asked_rate(const struct bloom *bloom, uint32_t index);

/* Returns how many items, 1 to BLOOM_BATCH_MAX, a caller should process at once
 * if it must not take long. The number is lower for filters with very many
 * layers, or with a large new layer, whose pages the kernel clears when they
 * are first touched. */
size_t bloom_together(const struct bloom *bloom);

/* Returns whether many small pages of a large newest layer are untouched. The
 * kernel clears a page when it is first written, which takes 1 to 2 us. */
bool bloom_is_fresh(const struct bloom *bloom);

/* Makes the kernel clear the pages that adds of these items will write, if the
 * filter is fresh. That takes one page fault for each page; the adds, which
 * read first, would cause two. The writer calls it before the adds. */
void bloom_touch(const struct bloom *bloom, const struct bloom_hash *hashes,
                 size_t count);

/* Returns the lines of one layer, one stripe after the other: lines x stripes x
 * 64 bytes, with words in the machine's byte order. NULL if there is no such
 * layer. */
const void *bloom_layer_lines(const struct bloom *bloom, uint32_t index,
                              size_t *ret_bytes);

/* Returns how far the filter has grown, for plan_next() under this limit, and
 * sets *ret_params as bloom_get_params() does. */
struct plan bloom_plan(const struct bloom *bloom, uint64_t limit_bytes,
                       struct bloom_params *ret_params);

/* Returns by how much bloom_size() rose when the newest layer was added. The
 * filter must have several layers. */
uint64_t bloom_growth_bytes(const struct bloom *bloom);

/* Fetch into the cache what a lookup of one item reads: first the structs of
 * the layers, then the lines. They help with a filter that nothing has used
 * lately, however small it is. */
void bloom_fetch_layers(const struct bloom *bloom);
void bloom_fetch(const struct bloom *bloom, struct bloom_hash hash);

/* Adds an item that the filter may contain already, because its bits were
 * copied later than its counts: sets the bits and raises the count in any case,
 * and grows as bloom_add() does. */
enum bloom_status bloom_force(struct bloom *bloom, const struct bloom_env *env,
                              struct bloom_hash hash);

/* Counts an item that bloom_force() would add, and grows the filter as
 * bloom_force() does, but sets no bit. The item belongs to the newest layer. */
enum bloom_status bloom_count_one(struct bloom *bloom,
                                  const struct bloom_env *env);

/* Sets the bits of an item in a filter that cannot grow, and counts nothing. It
 * serves the replay of a log with gaps, in which deletions may be missing: the
 * filter then has too many items, and must take the next ones all the same. */
void bloom_add_over(struct bloom *bloom, struct bloom_hash hash);

/* Does what bloom_merge() does, even if a layer gets more items than its
 * capacity: that layer is counted as full. It serves the replay of a log with
 * gaps, too. */
enum bloom_status bloom_merge_over(struct bloom *bloom,
                                   const struct bloom_env *env,
                                   const struct bloom *const *others,
                                   size_t count);

/* Makes an outline: a filter that hashes as BLOOM does, and whose only layer
 * has the place and the shape of BLOOM's newest. It is for hashing, and for
 * fetching lines ahead, when BLOOM itself may not be read. It owns nothing, and
 * nothing may be read through it. False: the filter is not native. */
bool bloom_outline(const struct bloom *bloom, struct bloom *ret_outline);

/* Returns whether every item has the same hash in both filters. */
bool bloom_hashes_alike(const struct bloom *a, const struct bloom *b);
