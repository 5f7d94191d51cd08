/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a filter takes, now and with one more layer: the one place where sizes
 * meet limits, for who makes a filter, lets it grow, reads one or foretells how
 * far it gets. Pure functions.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/sizing.h"

/* How far a chain has grown. */
struct plan {
    uint64_t line_bytes; /* all layers */
    uint64_t capacity;   /* newest layer */
    uint32_t count;
    bool odd; /* core/bloom.h */
};

/* The layer that would come next. */
struct plan_layer {
    struct geometry geometry;
    uint64_t capacity;
    uint64_t line_bytes;
    uint64_t size_bytes; /* of the whole filter with it */
};

/* Checks in the order in which a client is told; on failure *ret_next is
 * untouched. */
enum bloom_status plan_next(const struct bloom_params *params,
                            const struct plan *plan, uint64_t limit_bytes,
                            struct plan_layer *ret_next);

/* Slots of the chain of COUNT layers, 0 for one layer; it doubles. */
uint32_t plan_slots(uint32_t count);

/* Of struct bloom_chain with so many slots, 0 for one layer. */
size_t plan_chain_bytes(uint32_t count);

/* Of everything but the lines. */
uint64_t plan_struct_bytes(bool odd, uint32_t count);

/* What bloom_size() says of COUNT layers whose lines are LINE_BYTES: every
 * slot counts, used or not. False if it passes the limit; a sum beyond
 * INT64_MAX passes any. */
bool plan_size(bool odd, uint32_t count, uint64_t line_bytes,
               uint64_t limit_bytes, uint64_t *ret_bytes);

/* Whether capacity, error rate and tightening are in their ranges. */
bool plan_is_valid(const struct bloom_params *params);

/* Whether a filter with these parameters has something odd. */
bool plan_is_odd(const struct bloom_params *params);
