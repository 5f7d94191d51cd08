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
    uint64_t line_bytes;   /* all layers */
    uint64_t module_bytes; /* all layers: plan_module_layers() */
    uint64_t capacity;     /* newest layer */
    uint32_t count;
    bool odd;      /* core/filter.h */
    bool foretold; /* nothing grows: see plan_fits() */
};

/* The layer that would come next. */
struct plan_layer {
    struct geometry geometry;
    uint64_t capacity;
    uint64_t line_bytes;
    uint64_t module_bytes;
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
 * slot counts, used or not. False if it is beyond INT64_MAX. */
bool plan_size(bool odd, uint32_t count, uint64_t line_bytes,
               uint64_t *ret_bytes);

/* ---- the limit -----------------------------------------------------------
 *
 * A filter that valkey-bloom makes or lets grow under a limit shall fit here
 * too, and one that it refuses shall be refused. So a limit is compared with
 * what the filter would take there (module_bytes), as long as it takes at most
 * PLAN_SURPLUS more here; that is so up to error rates of about 0.1. Beyond it
 * our own size is compared.
 *
 * There a filter of n layers takes 48 bytes, 8 for each slot of a vector (1, 4,
 * 8, 16, ... slots), and for each layer 208 bytes and its bits. A layer that is
 * to come is judged by the slots that are there before it; a projection counts
 * those behind it. */

#define PLAN_SURPLUS 0.25

/* Of the first COUNT layers with these parameters, without the vector. At most
 * INT64_MAX. A logarithm a layer. */
uint64_t plan_module_layers(const struct bloom_params *params, uint32_t count);

/* Whether a filter of SIZE_BYTES, which would be MODULE_BYTES there, is within
 * the limit. */
bool plan_fits(uint64_t size_bytes, uint64_t module_bytes,
               uint64_t limit_bytes);

/* Whether COUNT layers that were stored or copied, of SIZE_BYTES altogether,
 * are: so if they could have grown under that limit. */
bool plan_stored_fits(const struct bloom_params *params, uint32_t count,
                      uint64_t size_bytes, uint64_t limit_bytes);

/* Whether capacity, error rate and tightening are in their ranges. */
bool plan_is_valid(const struct bloom_params *params);

/* Whether a filter with these parameters has something odd. */
bool plan_is_odd(const struct bloom_params *params);
