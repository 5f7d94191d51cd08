/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a filter is made of, for the files that make one: bloom.c, codec.c and
 * merge.c. Everybody else has <bloomery/bloom.h>. Invariants: every layer but
 * the newest is full; size_bytes is what bloom_chain_bytes() says.
 *
 * A server may hold a million filters of a hundred items, and most calls are
 * for one of them: what a lookup reads of struct bloom is its first 64 bytes,
 * and the first layer needs no allocation of its own.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/layer.h"

struct bloom {
    struct layer *layers; /* &first while there is only one */
    uint32_t count;       /* of layers; bloom_slots_for() says how many fit */
    uint32_t expansion;
    uint64_t seed64;
    struct layer first;
    uint64_t capacity; /* all layers */
    uint64_t size_bytes;
    double error_rate;
    double tightening;
    uint8_t seed[BLOOM_SEED_BYTES];
};

_Static_assert(offsetof(struct bloom, capacity) <= 64, "hot part: one line");
_Static_assert(sizeof(struct bloom) <= 144, "a filter has to stay small");

/* Slots of the separate array for COUNT layers, 0 for one layer; it doubles. */
uint32_t bloom_slots_for(uint32_t count);

/* What bloom_size() says of COUNT layers whose lines are LINE_BYTES: every
 * slot counts, used or not. False if it passes the limit; a sum beyond
 * INT64_MAX passes any. */
bool bloom_chain_bytes(uint32_t count, uint64_t line_bytes,
                       uint64_t limit_bytes, uint64_t *ret_bytes);

/* Whether capacity, error rate and tightening are in their ranges. */
bool bloom_params_valid(const struct bloom_params *params);
