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

#include "core/layer.h"
#include "core/sizing.h"

/* How far a chain has grown. */
struct plan {
    uint64_t line_bytes;   /* of all layers */
    uint64_t module_bytes; /* of all layers: plan_module_layers() */
    uint64_t capacity;     /* of the newest layer */
    uint32_t count;
    uint32_t older; /* of kind ageing: layers of older generations; else 0 */
    unsigned parts; /* PLAN_* */
    double rate;    /* of the next layer; 0: as the parameters say */
    bool projected; /* set by plan_project(): see "the limit" below */
};

/* What a filter has besides struct bloom and its chain (core/filter.h). */
enum {
    PLAN_ODD = 1,      /* struct bloom_odd */
    PLAN_EXTRA = 2,    /* struct bloom_extra */
    PLAN_LAYERS = 4,   /* a struct bloom_extra_layer for each slot of a chain */
    PLAN_COVERAGE = 8, /* struct bloom_coverage */
    PLAN_KEYED = 16    /* the struct bloom_extra is in a struct bloom_keyed */
};

/* The layer that would come next. */
struct plan_layer {
    struct geometry geometry;
    uint64_t capacity;
    uint64_t line_bytes;
    uint64_t module_bytes;
    uint64_t size_bytes; /* of the whole filter, with this layer */
};

/* Plans the next layer of a filter with valid parameters. Checks in the order
 * in which clients expect errors; on failure *ret_next is untouched. */
enum bloom_status plan_next(const struct bloom_params *params,
                            const struct plan *plan, uint64_t limit_bytes,
                            struct plan_layer *ret_next);

/* Projects the capacity that a filter with these parameters reaches under
 * size_limit_bytes, as valkey-bloom does. Layer by layer it makes the checks of
 * bloom_new() and bloom_add(), with three differences. It counts the slots for
 * one layer more (see "the limit" below), so that a real filter may reach one
 * layer more. It ends with BLOOM_OVERFLOW if the newest capacity x expansion
 * overflows, which a filter finds only with the next layer. And it ends with
 * BLOOM_RATE_ZERO if the error rate is at most DBL_MIN, although bloom_new()
 * makes such a first layer. Without a target (0) it returns BLOOM_OK and the
 * total capacity at the end, unless it ends by BLOOM_OVERFLOW. With a target it
 * returns BLOOM_OK as soon as the total reaches it, else the status that ended
 * it (BLOOM_LIMIT, BLOOM_RATE_ZERO, BLOOM_OVERFLOW, BLOOM_MAX_LAYERS, or
 * BLOOM_FULL for a nonscaling filter). Parameters out of range are
 * BLOOM_INVALID. *ret_total, which may be NULL, is set with BLOOM_OK only.
 * Takes a few microseconds a layer. */
enum bloom_status plan_project(const struct bloom_params *params,
                               uint64_t size_limit_bytes, uint64_t target,
                               uint64_t *ret_total);

/* Returns the largest capacity of the first layer of a filter with these
 * parameters under the limit; the capacity in the parameters is ignored. 0:
 * none fits. */
uint64_t plan_largest(const struct bloom_params *params,
                      uint64_t size_limit_bytes);

/* Returns the slots of a chain of COUNT layers, 0 for one layer. Slots grow by
 * doubling. */
uint32_t plan_slots(uint32_t count);

/* Returns the bytes of a struct bloom_extra. */
size_t plan_extra_bytes(unsigned parts);

/* Returns the bytes of a chain of COUNT layers, 0 for one layer. */
size_t plan_chain_bytes(unsigned parts, uint32_t count);

/* Returns the bytes of all structs, without the lines. */
uint64_t plan_struct_bytes(unsigned parts, uint32_t count);

/* Computes bloom_size() for COUNT layers whose lines are LINE_BYTES; every slot
 * counts, used or not. False if it exceeds INT64_MAX. */
bool plan_size(unsigned parts, uint32_t count, uint64_t line_bytes,
               uint64_t *ret_bytes);

/* ---- the limit -----------------------------------------------------------
 *
 * A filter that valkey-bloom makes or lets grow under a limit must fit here
 * too, and a filter that it refuses must be refused. So a limit is compared
 * with the size of the filter in valkey-bloom (module_bytes), as long as the
 * filter takes at most PLAN_SURPLUS more here. That is the case up to error
 * rates of about 0.1. Beyond that, our own size is compared.
 *
 * In valkey-bloom a filter of n layers takes 48 bytes, 8 for each slot of a
 * vector (1, 4, 8, 16, ... slots), and for each layer 208 bytes and its bits.
 * Growth counts the slots before the new layer, a projection those after it.
 * The limit is compared with a filter's own size for kind redisbloom, since
 * layers that were loaded need not follow from the parameters. The same holds
 * for kind ageing, whose first layer counts with the size that it will have in
 * all generations. */

#define PLAN_SURPLUS 0.25

/* Returns the bytes of the first COUNT layers in valkey-bloom, without the
 * vector; at most INT64_MAX. Computes one logarithm for each layer. */
uint64_t plan_module_layers(const struct bloom_params *params, uint32_t count);

/* Returns whether a filter of SIZE_BYTES is within the limit. In valkey-bloom
 * the filter takes GROWN_BYTES. But valkey-bloom compares only MODULE_BYTES
 * with the limit, since growth does not count the new slots yet. */
bool plan_fits(uint64_t size_bytes, uint64_t grown_bytes, uint64_t module_bytes,
               uint64_t limit_bytes);

/* Returns whether a stored or copied filter of COUNT layers and SIZE_BYTES
 * could have grown under this limit. */
bool plan_stored_fits(const struct bloom_params *params, uint32_t count,
                      uint64_t size_bytes, uint64_t limit_bytes);

/* Returns whether capacity, error rate and tightening are in their ranges, and
 * the kind is known. */
bool plan_is_valid(const struct bloom_params *params);

/* Returns the parameters of one generation of an ageing filter: a share of the
 * capacity (1 / generations), and of the rate (1 / plan_ring()). For other
 * kinds, returns the parameters unchanged. */
struct bloom_params plan_generation(const struct bloom_params *params);

/* Returns how many generations a lookup asks at most, which is generations + 1;
 * 1 for kinds that do not age. */
uint32_t plan_ring(const struct bloom_params *params);

/* Does what plan_is_valid, plan_parts and plan_next do for a new filter. Each
 * thread remembers the last plan: most filters of a server differ only in their
 * seeds. */
enum bloom_status plan_first(const struct bloom_params *params,
                             uint64_t limit_bytes, unsigned *ret_parts,
                             struct plan_layer *ret_next);

/* Returns the parts, as PLAN_* bits, of a complete filter with these
 * parameters. */
unsigned plan_parts(const struct bloom_params *params);
