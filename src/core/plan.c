/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sizes of filters: all sums that are compared with a limit are computed here.
 */
#include "core/plan.h"

#include <float.h>

#include "base/err.h"
#include "core/filter.h"
#include "core/seed.h"

uint32_t
plan_slots(uint32_t count)
{
    uint32_t slots = 2;

    if (count <= 1) {
        return 0;
    }
    while (slots < count) {
        slots *= 2;
    }
    return slots;
}

size_t
plan_chain_bytes(uint32_t count)
{
    return count > 1 ? sizeof(struct bloom_chain) +
                           plan_slots(count) * sizeof(struct layer)
                     : 0;
}

uint64_t
plan_struct_bytes(bool odd, uint32_t count)
{
    return sizeof(struct bloom) + (odd ? sizeof(struct bloom_odd) : 0) +
           plan_chain_bytes(count);
}

bool
plan_size(bool odd, uint32_t count, uint64_t line_bytes, uint64_t *ret_bytes)
{
    uint64_t structs = plan_struct_bytes(odd, count);

    if (line_bytes > INT64_MAX - structs) {
        return false;
    }
    *ret_bytes = structs + line_bytes;
    return true;
}

/* ---- the limit ----------------------------------------------------------- */

enum {
    MODULE_BYTES = 48,
    MODULE_SLOT_BYTES = 8,
    MODULE_SLOTS_FEW = 4, /* of two layers */
    MODULE_LAYER_BYTES = 208
};

/* Adds two numbers of at most INT64_MAX, and stops there. */
static uint64_t
add_capped(uint64_t a, uint64_t b)
{
    return a < INT64_MAX - b ? a + b : INT64_MAX;
}

static uint64_t
module_vector_bytes(uint32_t count)
{
    uint64_t slots = count > 1 ? MODULE_SLOTS_FEW : 1;

    while (slots < count) {
        slots *= 2;
    }
    return MODULE_BYTES + slots * MODULE_SLOT_BYTES;
}

static uint64_t
module_layer_bytes(uint64_t capacity, double rate)
{
    return add_capped(MODULE_LAYER_BYTES, sizing_classic_bytes(capacity, rate));
}

uint64_t
plan_module_layers(const struct bloom_params *params, uint32_t count)
{
    uint64_t capacity = params->capacity;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < count; i++) {
        double rate =
            sizing_layer_rate(params->error_rate, params->tightening, i);

        bytes = add_capped(bytes, module_layer_bytes(capacity, rate));
        capacity *= params->expansion;
    }
    return bytes;
}

bool
plan_fits(uint64_t size_bytes, uint64_t module_bytes, uint64_t limit_bytes)
{
    bool similar =
        (double)size_bytes <= (double)module_bytes * (1 + PLAN_SURPLUS);

    return (similar ? module_bytes : size_bytes) <= limit_bytes;
}

/* The vector had count - 1 layers when the newest one came. */
bool
plan_stored_fits(const struct bloom_params *params, uint32_t count,
                 uint64_t size_bytes, uint64_t limit_bytes)
{
    return limit_bytes >= INT64_MAX ||
           plan_fits(size_bytes,
                     add_capped(module_vector_bytes(count - 1),
                                plan_module_layers(params, count)),
                     limit_bytes);
}

/* ---- what comes next ----------------------------------------------------- */

static bool
in_open_unit(double value)
{
    return value > 0 && value < 1; /* false for NaN */
}

bool
plan_is_valid(const struct bloom_params *params)
{
    return params->capacity >= 1 && params->capacity <= BLOOM_CAPACITY_MAX &&
           in_open_unit(params->error_rate) && in_open_unit(params->tightening);
}

bool
plan_is_odd(const struct bloom_params *params)
{
    return params->tightening != BLOOM_USUAL_TIGHTENING ||
           !seed_is_derived(params->seed, seed_hash(params->seed));
}

/* Returns the geometry of layer 0: the stored one if the parameters have it. */
static bool
first_geometry(const struct bloom_params *params, struct geometry *ret_geometry)
{
    struct geometry geometry;

    if (params->stripes == 0 && params->lines == 0) {
        *ret_geometry = sizing_geometry(params->capacity, params->error_rate);
        return true;
    }
    geometry.stripes = params->stripes;
    geometry.lines = params->lines;
    if (!sizing_acceptable(params->capacity, params->error_rate, geometry)) {
        return false;
    }
    *ret_geometry = geometry;
    return true;
}

enum bloom_status
plan_next(const struct bloom_params *params, const struct plan *plan,
          uint64_t limit_bytes, struct plan_layer *ret_next)
{
    struct plan_layer next = { .capacity = params->capacity };
    double rate = params->error_rate;
    uint64_t vector;

    CHECK(plan_is_valid(params) && (plan->count == 0 || plan->capacity > 0));
    if (plan->count == 0) {
        if (!first_geometry(params, &next.geometry)) {
            return BLOOM_INVALID;
        }
    } else {
        if (params->expansion == 0) {
            return BLOOM_FULL;
        }
        if (plan->count >= BLOOM_LAYERS_MAX) {
            return BLOOM_MAX_LAYERS;
        }
        rate = sizing_layer_rate(params->error_rate, params->tightening,
                                 plan->count);
        if (rate <= DBL_MIN) {
            return BLOOM_RATE_ZERO;
        }
        if (plan->capacity > BLOOM_CAPACITY_MAX / params->expansion) {
            return BLOOM_OVERFLOW;
        }
        next.capacity = plan->capacity * params->expansion;
        next.geometry = sizing_geometry(next.capacity, rate);
    }
    next.module_bytes =
        add_capped(plan->module_bytes, module_layer_bytes(next.capacity, rate));
    vector = module_vector_bytes(plan->count + plan->projected);
    if (!sizing_bytes(next.geometry, &next.line_bytes) ||
        !plan_size(plan->odd, plan->count + 1,
                   plan->line_bytes + next.line_bytes, &next.size_bytes) ||
        (limit_bytes < INT64_MAX &&
         !plan_fits(next.size_bytes, add_capped(vector, next.module_bytes),
                    limit_bytes))) {
        return BLOOM_LIMIT;
    }
    CHECK(next.capacity > 0 && next.line_bytes > 0);
    *ret_next = next;
    return BLOOM_OK;
}

enum bloom_status
bloom_project(const struct bloom_params *params, uint64_t size_limit_bytes,
              uint64_t target, uint64_t *ret_total)
{
    enum bloom_status status = BLOOM_OK;
    struct plan plan = { .odd = plan_is_odd(params), .projected = true };
    struct plan_layer next;
    uint64_t total = 0;

    if (!plan_is_valid(params)) {
        return BLOOM_INVALID;
    }
    while (target == 0 || total < target) {
        status = plan_next(params, &plan, size_limit_bytes, &next);
        if (status != BLOOM_OK) {
            break;
        }
        total = next.capacity < BLOOM_CAPACITY_MAX - total
                    ? total + next.capacity
                    : BLOOM_CAPACITY_MAX;
        plan.count++;
        plan.capacity = next.capacity;
        plan.line_bytes += next.line_bytes;
        plan.module_bytes = next.module_bytes;
        if (params->expansion > 0 &&
            plan.capacity > BLOOM_CAPACITY_MAX / params->expansion) {
            status = BLOOM_OVERFLOW;
            break;
        }
    }
    if (target == 0 && status != BLOOM_OVERFLOW && status != BLOOM_INVALID) {
        status = BLOOM_OK;
    }
    if (status == BLOOM_OK && ret_total != NULL) {
        *ret_total = total;
    }
    return status;
}
