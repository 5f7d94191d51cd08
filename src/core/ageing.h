/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ageing filters: native layers that forget. An item is found for at least
 * `seconds` after its last add, and at most seconds x (1 + 1 / generations).
 *
 * The layers of one turn (core/turns.h) are a generation: the first has a share
 * of the capacity, and more follow if it is full before the turn ends. The
 * filter's turn is that of its newest generation. A layer's age is the number
 * of turns from its own to the filter's. Layers are sorted, the oldest first,
 * and a turn without adds has no layer. A layer is live while its age is at
 * most `generations`. So a lookup asks up to generations + 1 generations, and
 * each has 1 / (generations + 1) of the error rate. An add in a later turn than
 * the filter's raises all ages, frees the layers that are not live, and begins
 * a generation. An item that only older generations have is added to the newest
 * one again.
 *
 * So a filter is a function of the adds and their times, and nothing changes
 * without an add. A lookup between two adds computes the ages by the clock, and
 * changes nothing. A time before the filter's turn counts as that turn.
 */
#pragma once

#include "core/filter.h"

/* Returns the turn of a filter's newest generation; 0 for other kinds. */
uint64_t ageing_turn(const struct bloom *bloom);

/* Sets the turn of an empty filter to that of this time, even if it is earlier.
 */
void ageing_begin(struct bloom *bloom, uint64_t now_ms);

/* Does what bloom_contains_batch() does, at this time, for filters of any kind.
 */
void ageing_contains_batch(const struct bloom *bloom,
                           const struct bloom_hash *hashes, size_t count,
                           uint64_t now_ms, bool *ret_found);

/* Return the number of adds, and of layers, in the generations that are live at
 * this time; for other kinds, of all layers. An item that is in several
 * generations counts in each of them. */
uint64_t ageing_items(const struct bloom *bloom, uint64_t now_ms);
uint32_t ageing_layers(const struct bloom *bloom, uint64_t now_ms);

/* Returns the milliseconds from the beginning of a layer's turn to this time.
 */
uint64_t ageing_age_ms(const struct bloom *bloom, uint32_t index,
                       uint64_t now_ms);

/* Returns the capacity of the generation that an add at this time would begin;
 * 0 if the add would begin no generation. */
uint64_t ageing_room(const struct bloom *bloom, uint64_t now_ms);

/* Adds an item at this time. The newest generation may have the item already,
 * because its bits were copied later than its counts. */
enum bloom_status ageing_force(struct bloom *bloom, const struct bloom_env *env,
                               struct bloom_hash hash, uint64_t now_ms);

/* Makes a filter the union of itself and others, none of which differs
 * (bloom_difference()), for bloom_merge(): generation by generation, at the
 * latest turn of all. The counts of items are added up. OVER is set by
 * bloom_merge_over(). */
enum bloom_status ageing_merge(struct bloom *bloom, const struct bloom_env *env,
                               const struct bloom *const *others, size_t count,
                               bool over);
