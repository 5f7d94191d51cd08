/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ageing filters: native layers that forget. An item is found for at least
 * `seconds` after its last add, and at most seconds x (1 + 1 / generations).
 *
 * The layers of one turn (core/turns.h) are a generation: the first has a share
 * of the capacity, and more follow if it is full before its time. A layer's age
 * is the number of turns since its own, as of the filter's turn; that is the
 * turn of its newest generation. Layers are sorted, the oldest first, and a
 * turn without adds has none. A layer is live while its age is at most
 * `generations`, so one generation more than these is asked, each at that share
 * of the error rate. An add to a later turn than the filter's raises all ages,
 * frees the layers that are not live, and begins a generation. An item that
 * only older generations have is added to the newest one again.
 *
 * So all is a function of the adds and their times, and nothing happens
 * without an add. What is asked between two adds takes the layers for older, by
 * the clock, and changes nothing. A time before the filter's turn is taken for
 * that turn.
 */
#pragma once

#include "core/filter.h"

/* Returns the turn of a filter's newest generation; 0 of other kinds. */
uint64_t ageing_turn(const struct bloom *bloom);

/* Makes this time the filter's, which must be empty: also an earlier one. */
void ageing_begin(struct bloom *bloom, uint64_t now_ms);

/* Does what bloom_contains_batch() does, at a time. Any kind. */
void ageing_contains_batch(const struct bloom *bloom,
                           const struct bloom_hash *hashes, size_t count,
                           uint64_t now_ms, bool *ret_found);

/* Return the adds, and the layers, of the generations that are live at a time;
 * of other kinds all. An item that was renewed counts in each generation that
 * has it. */
uint64_t ageing_items(const struct bloom *bloom, uint64_t now_ms);
uint32_t ageing_layers(const struct bloom *bloom, uint64_t now_ms);

/* Returns the milliseconds from the begin of a layer's turn to a time. */
uint64_t ageing_age_ms(const struct bloom *bloom, uint32_t index,
                       uint64_t now_ms);

/* Returns the capacity of the generation that an add at this time would begin;
 * 0: it would begin none. */
uint64_t ageing_room(const struct bloom *bloom, uint64_t now_ms);

/* Adds an item at a time, which the newest generation may contain already,
 * because its bits were copied later than its counts. */
enum bloom_status ageing_force(struct bloom *bloom, const struct bloom_env *env,
                               struct bloom_hash hash, uint64_t now_ms);

/* Makes a filter the union of itself and others, none of which differs
 * (bloom_difference()), for bloom_merge(): generation by generation, at the
 * latest turn of all. Items are added up. OVER: for bloom_merge_over(). */
enum bloom_status ageing_merge(struct bloom *bloom, const struct bloom_env *env,
                               const struct bloom *const *others, size_t count,
                               bool over);
