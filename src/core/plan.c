/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sizes of filters: all sums that are compared with a limit are made here.
 */
#include "core/plan.h"

#include <float.h>

#include "core/bloom.h"
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
plan_size(bool odd, uint32_t count, uint64_t line_bytes, uint64_t limit_bytes,
          uint64_t *ret_bytes)
{
    uint64_t structs = plan_struct_bytes(odd, count);
    uint64_t most = limit_bytes < INT64_MAX ? limit_bytes : INT64_MAX;

    if (structs > most || line_bytes > most - structs) {
        return false;
    }
    *ret_bytes = structs + line_bytes;
    return true;
}

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

/* The geometry of layer 0: the stored one if there is one. */
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
    double rate;

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
    if (!sizing_bytes(next.geometry, &next.line_bytes) ||
        !plan_size(plan->odd, plan->count + 1,
                   plan->line_bytes + next.line_bytes, limit_bytes,
                   &next.size_bytes)) {
        return BLOOM_LIMIT;
    }
    *ret_next = next;
    return BLOOM_OK;
}

enum bloom_status
bloom_project(const struct bloom_params *params, uint64_t size_limit_bytes,
              uint64_t target, uint64_t *ret_total)
{
    enum bloom_status status = BLOOM_OK;
    struct plan plan = { .odd = plan_is_odd(params) };
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
    }
    if (target == 0 && status != BLOOM_OVERFLOW && status != BLOOM_INVALID) {
        status = BLOOM_OK;
    }
    if (status == BLOOM_OK && ret_total != NULL) {
        *ret_total = total;
    }
    return status;
}
