/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The size of a filter, now and with one more layer. All code that makes a
 * filter, lets it grow, loads it or projects its growth compares sizes with
 * limits here. Pure functions.
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
    bool odd;       /* has a struct bloom_odd (core/filter.h) */
    bool projected; /* by bloom_project(): see "the limit" below */
};

/* The layer that would come next. */
struct plan_layer {
    struct geometry geometry;
    uint64_t capacity;
    uint64_t line_bytes;
    uint64_t module_bytes;
    uint64_t size_bytes; /* of the whole filter with it */
};

/* Plans the next layer of a filter with valid parameters. Checks in the order
 * in which clients expect errors; on failure *ret_next is untouched. */
enum bloom_status plan_next(const struct bloom_params *params,
                            const struct plan *plan, uint64_t limit_bytes,
                            struct plan_layer *ret_next);

/* Returns the slots of a chain of COUNT layers, 0 for one layer. They double.
 */
uint32_t plan_slots(uint32_t count);

/* Returns the bytes of a chain of COUNT layers, 0 for one layer. */
size_t plan_chain_bytes(uint32_t count);

/* Returns the bytes of all structs, without the lines. */
uint64_t plan_struct_bytes(bool odd, uint32_t count);

/* Computes bloom_size() for COUNT layers whose lines are LINE_BYTES; every slot
 * counts, used or not. False if it exceeds INT64_MAX. */
bool plan_size(bool odd, uint32_t count, uint64_t line_bytes,
               uint64_t *ret_bytes);

/* ---- the limit -----------------------------------------------------------
 *
 * A filter that valkey-bloom makes or lets grow under a limit must fit here
 * too, and one that it refuses must be refused. So a limit is compared with the
 * size of the filter in valkey-bloom (module_bytes), as long as it takes at
 * most PLAN_SURPLUS more here, which is so up to error rates of about 0.1.
 * Beyond that, our own size is compared.
 *
 * In valkey-bloom a filter of n layers takes 48 bytes, 8 for each slot of a
 * vector (1, 4, 8, 16, ... slots), and for each layer 208 bytes and its bits.
 * Growth counts the slots before the new layer, a projection those after it. */

#define PLAN_SURPLUS 0.25

/* Returns the bytes of the first COUNT layers in valkey-bloom, without the
 * vector; at most INT64_MAX. Computes a logarithm a layer. */
uint64_t plan_module_layers(const struct bloom_params *params, uint32_t count);

/* Returns whether a filter of SIZE_BYTES, and MODULE_BYTES in valkey-bloom, is
 * within the limit. */
bool plan_fits(uint64_t size_bytes, uint64_t module_bytes,
               uint64_t limit_bytes);

/* Returns whether a stored or copied filter of COUNT layers and SIZE_BYTES
 * could have grown under this limit. */
bool plan_stored_fits(const struct bloom_params *params, uint32_t count,
                      uint64_t size_bytes, uint64_t limit_bytes);

/* Returns whether capacity, error rate and tightening are in their ranges. */
bool plan_is_valid(const struct bloom_params *params);

/* Returns whether a filter with these parameters needs a struct bloom_odd. */
bool plan_is_odd(const struct bloom_params *params);
