/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sizes of filters: all sums that are compared with a limit are computed here.
 */
#include "core/plan.h"

#include <float.h>

#include "base/err.h"
#include "core/collision.h"
#include "core/filter.h"
#include "core/foreign.h"
#include "core/seed.h"
#include "core/turns.h"

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
plan_extra_bytes(unsigned parts)
{
    return (parts & PLAN_KEYED) != 0 ? sizeof(struct bloom_keyed)
                                     : sizeof(struct bloom_extra);
}

size_t
plan_chain_bytes(unsigned parts, uint32_t count)
{
    size_t slot_bytes = sizeof(struct layer);

    if ((parts & PLAN_LAYERS) != 0) {
        slot_bytes += sizeof(struct bloom_extra_layer);
    }
    return count > 1
               ? sizeof(struct bloom_chain) + plan_slots(count) * slot_bytes
               : 0;
}

uint64_t
plan_struct_bytes(unsigned parts, uint32_t count)
{
    uint64_t bytes = sizeof(struct bloom) + plan_chain_bytes(parts, count);

    if ((parts & PLAN_ODD) != 0) {
        bytes += sizeof(struct bloom_odd);
    }
    if ((parts & PLAN_EXTRA) != 0) {
        bytes += plan_extra_bytes(parts);
    }
    if ((parts & PLAN_COVERAGE) != 0) {
        bytes += sizeof(struct bloom_coverage);
    }
    return bytes;
}

bool
plan_size(unsigned parts, uint32_t count, uint64_t line_bytes,
          uint64_t *ret_bytes)
{
    uint64_t structs = plan_struct_bytes(parts, count);

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
    MODULE_SLOTS_FEW = 4, /* as soon as there are two layers */
    MODULE_LAYER_BYTES = 208
};

/* Adds two numbers of at most INT64_MAX. A sum above INT64_MAX becomes
 * INT64_MAX. */
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
plan_fits(uint64_t size_bytes, uint64_t grown_bytes, uint64_t module_bytes,
          uint64_t limit_bytes)
{
    bool similar =
        (double)size_bytes <= (double)grown_bytes * (1 + PLAN_SURPLUS);

    return (similar ? module_bytes : size_bytes) <= limit_bytes;
}

/* Does what plan_fits() does for COUNT layers, which take LAYERS_BYTES in
 * valkey-bloom. When valkey-bloom compares their size with the limit, its
 * vector has the slots for SLOTTED layers. */
static bool
layers_fit(uint64_t size_bytes, uint64_t layers_bytes, uint32_t count,
           uint32_t slotted, uint64_t limit_bytes)
{
    return plan_fits(
        size_bytes, add_capped(module_vector_bytes(count), layers_bytes),
        add_capped(module_vector_bytes(slotted), layers_bytes), limit_bytes);
}

/* Returns whether a limit is compared with the size of a filter of this kind
 * here, not with its size in valkey-bloom. */
static bool
is_own_size(uint32_t kind)
{
    return kind == BLOOM_REDISBLOOM || kind == BLOOM_AGEING;
}

/* valkey-bloom compares the limit before it adds a layer, when the vector has
 * count - 1 layers. */
bool
plan_stored_fits(const struct bloom_params *params, uint32_t count,
                 uint64_t size_bytes, uint64_t limit_bytes)
{
    return limit_bytes >= INT64_MAX ||
           (is_own_size(params->kind)
                ? size_bytes <= limit_bytes
                : layers_fit(size_bytes, plan_module_layers(params, count),
                             count, count - 1, limit_bytes));
}

/* ---- what comes next ----------------------------------------------------- */

/* Returns log2 of the words of a region (kind deletable); 0 for 0. */
static uint32_t
region_log2(uint32_t region)
{
    uint32_t log2 = 0;

    while (region >> (log2 + 1) != 0) {
        log2++;
    }
    return log2;
}

static bool
in_open_unit(double value)
{
    return value > 0 && value < 1; /* false for NaN */
}

struct bloom_params
plan_generation(const struct bloom_params *params)
{
    struct bloom_params one = *params;

    if (params->kind == BLOOM_AGEING) {
        one.capacity = (params->capacity - 1) / params->generations + 1;
        one.error_rate = params->error_rate / plan_ring(params);
    }
    return one;
}

uint32_t
plan_ring(const struct bloom_params *params)
{
    return params->kind == BLOOM_AGEING ? params->generations + 1 : 1;
}

/* Returns whether the parameters of ageing are valid. For other kinds all of
 * them must be 0. */
static bool
ages_right(const struct bloom_params *params)
{
    if (params->kind != BLOOM_AGEING) {
        return params->seconds == 0 && params->generations == 0 &&
               params->now_ms == 0;
    }
    return turns_are_valid(params->seconds, params->generations) &&
           params->error_rate / plan_ring(params) > DBL_MIN;
}

bool
plan_is_valid(const struct bloom_params *params)
{
    uint32_t flags = foreign_is(params->kind) ? 0 : BLOOM_KEYED;

    if (params->kind == BLOOM_REDISBLOOM) {
        flags = BLOOM_EXPANSION_ZERO;
    }
    return params->kind < BLOOM_KINDS && (params->flags & ~flags) == 0 &&
           params->reserved == 0 &&
           (params->kind == BLOOM_DELETABLE
                ? collision_is_region(params->region)
                : params->region == 0) &&
           params->capacity >= 1 && params->capacity <= BLOOM_CAPACITY_MAX &&
           in_open_unit(params->error_rate) &&
           in_open_unit(params->tightening) && ages_right(params) &&
           (params->kind != BLOOM_REDISBLOOM ||
            params->tightening == REDISBLOOM_TIGHTENING);
}

/* derived: the seed is one that bloom_seed() returns. */
static unsigned
parts_of(const struct bloom_params *params, bool derived)
{
    if ((params->flags & BLOOM_KEYED) != 0) {
        return PLAN_EXTRA | PLAN_KEYED;
    }
    if (params->kind != BLOOM_NATIVE) {
        return params->kind == BLOOM_REDISBLOOM ? PLAN_EXTRA | PLAN_LAYERS
                                                : PLAN_EXTRA;
    }
    return params->tightening != BLOOM_USUAL_TIGHTENING || !derived ? PLAN_ODD
                                                                    : 0;
}

unsigned
plan_parts(const struct bloom_params *params)
{
    return parts_of(params,
                    seed_is_derived(params->seed, seed_hash(params->seed)));
}

static struct geometry
geometry_of(const struct bloom_params *params, uint64_t capacity, double rate)
{
    struct geometry geometry;

    switch (params->kind) {
    case BLOOM_REDISBLOOM:
        return redisbloom_geometry(capacity, rate);
    case BLOOM_VALKEYBLOOM:
        return valkeybloom_geometry(capacity, rate);
    default:
        geometry = sizing_geometry(capacity, rate);
        geometry.log2 = region_log2(params->region);
        return geometry;
    }
}

/* Returns whether two numbers of bits differ so little that two mathematical
 * libraries may have computed them from the same parameters. */
static bool
is_near(uint64_t a, uint64_t b)
{
    uint64_t larger = a > b ? a : b;
    uint64_t smaller = a > b ? b : a;

    return larger - smaller <= 64 + (larger >> 40);
}

/* Returns the geometry of layer 0: the stored one if the parameters have it. */
static bool
first_geometry(const struct bloom_params *params, struct geometry *ret_geometry)
{
    struct geometry formula =
        geometry_of(params, params->capacity, params->error_rate);
    struct geometry geometry = { .lines = params->lines,
                                 .stripes = params->stripes,
                                 .log2 = formula.log2 };

    if (params->stripes == 0 && params->lines == 0) {
        *ret_geometry = formula;
        return true;
    }
    if (!foreign_is(params->kind)
            ? !sizing_acceptable(params->capacity, params->error_rate, geometry)
            : geometry.stripes != formula.stripes ||
                  !is_near(geometry.lines, formula.lines)) {
        return false;
    }
    *ret_geometry = geometry;
    return true;
}

/* Returns the bytes of the filter with the next layer. For a new ageing filter,
 * returns the bytes that it will have with all generations. */
static uint64_t
whole_size(const struct bloom_params *params, const struct plan *plan,
           const struct plan_layer *next)
{
    uint64_t ring = plan->count == 0 ? plan_ring(params) : 1;
    uint64_t line_bytes = 0;
    uint64_t bytes = next->size_bytes;

    if (ring > 1 &&
        (__builtin_mul_overflow(next->line_bytes, ring, &line_bytes) ||
         !plan_size(plan->parts, (uint32_t)ring, line_bytes, &bytes))) {
        return UINT64_MAX; /* above any limit */
    }
    return bytes;
}

enum bloom_status
plan_next(const struct bloom_params *params, const struct plan *plan,
          uint64_t limit_bytes, struct plan_layer *ret_next)
{
    const struct bloom_params first = plan_generation(params);
    struct plan_layer next = { .capacity = first.capacity };
    double rate = first.error_rate;

    CHECK(params->kind < BLOOM_KINDS &&
          (plan->count > 0 || plan_is_valid(params)));
    if (plan->count == 0) {
        if (!first_geometry(&first, &next.geometry)) {
            return BLOOM_INVALID;
        }
    } else {
        if (params->expansion == 0) {
            return BLOOM_FULL;
        }
        if (plan->count >= BLOOM_LAYERS_MAX) {
            return BLOOM_MAX_LAYERS;
        }
        rate = plan->rate > 0
                   ? plan->rate
                   : sizing_layer_rate(first.error_rate, params->tightening,
                                       plan->count - plan->older);
        if (rate <= DBL_MIN) {
            return BLOOM_RATE_ZERO;
        }
        if (plan->capacity == 0 ||
            plan->capacity > BLOOM_CAPACITY_MAX / params->expansion) {
            return BLOOM_OVERFLOW;
        }
        next.capacity = plan->capacity * params->expansion;
        next.geometry = geometry_of(params, next.capacity, rate);
    }
    next.module_bytes =
        add_capped(plan->module_bytes, module_layer_bytes(next.capacity, rate));
    if (!layer_geometry_bytes(params->kind, next.geometry, &next.line_bytes) ||
        !plan_size(plan->parts, plan->count + 1,
                   plan->line_bytes + next.line_bytes, &next.size_bytes) ||
        (is_own_size(params->kind)
             ? whole_size(params, plan, &next) >
                   (limit_bytes < INT64_MAX ? limit_bytes : INT64_MAX)
             : limit_bytes < INT64_MAX &&
                   !layers_fit(next.size_bytes, next.module_bytes,
                               plan->count + 1, plan->count + plan->projected,
                               limit_bytes))) {
        return BLOOM_LIMIT;
    }
    CHECK(next.capacity > 0 && next.line_bytes > 0);
    *ret_next = next;
    return BLOOM_OK;
}

/* Returns whether the plans are the same if both seeds are derived. */
static bool
are_alike(const struct bloom_params *a, const struct bloom_params *b)
{
    return a->capacity == b->capacity && a->error_rate == b->error_rate &&
           a->tightening == b->tightening && a->expansion == b->expansion &&
           a->kind == b->kind && a->lines == b->lines &&
           a->stripes == b->stripes && a->flags == b->flags &&
           a->region == b->region && a->reserved == b->reserved &&
           a->seconds == b->seconds && a->generations == b->generations &&
           a->now_ms == b->now_ms;
}

enum bloom_status
plan_first(const struct bloom_params *params, uint64_t limit_bytes,
           unsigned *ret_parts, struct plan_layer *ret_next)
{
    static _Thread_local struct {
        struct bloom_params params; /* valid ones */
        struct plan_layer next;     /* capacity 0: nothing is remembered */
        uint64_t limit_bytes;
    } last;
    struct plan none = { 0 };
    enum bloom_status status;
    bool derived = seed_is_derived(params->seed, seed_hash(params->seed));

    if (derived && last.next.capacity > 0 && last.limit_bytes == limit_bytes &&
        are_alike(&last.params, params)) {
        *ret_parts = parts_of(params, derived);
        *ret_next = last.next;
        return BLOOM_OK;
    }
    if (!plan_is_valid(params)) {
        return BLOOM_INVALID;
    }
    none.parts = parts_of(params, derived);
    status = plan_next(params, &none, limit_bytes, ret_next);
    if (status != BLOOM_OK) {
        return status;
    }
    *ret_parts = none.parts;
    if (derived) {
        last.params = *params;
        last.next = *ret_next;
        last.limit_bytes = limit_bytes;
    }
    return BLOOM_OK;
}

/* Projects one generation of an ageing filter, which has its part of the limit,
 * and of the target. */
static enum bloom_status
project_generation(const struct bloom_params *params, uint64_t size_limit_bytes,
                   uint64_t target, uint64_t *ret_total)
{
    struct bloom_params one = plan_generation(params);
    uint64_t limit = size_limit_bytes / plan_ring(params);
    uint64_t total = 0;
    enum bloom_status status;

    one.kind = BLOOM_NATIVE;
    one.seconds = one.generations = 0;
    one.now_ms = 0;
    status = plan_project(&one, limit,
                          target / params->generations +
                              (target % params->generations != 0),
                          &total);
    if (status == BLOOM_OK && ret_total != NULL) {
        *ret_total = total < BLOOM_CAPACITY_MAX / params->generations
                         ? total * params->generations
                         : BLOOM_CAPACITY_MAX;
    }
    return status;
}

enum bloom_status
plan_project(const struct bloom_params *params, uint64_t size_limit_bytes,
             uint64_t target, uint64_t *ret_total)
{
    enum bloom_status status = BLOOM_OK;
    struct plan plan = { .parts = plan_parts(params), .projected = true };
    struct plan_layer next;
    uint64_t total = 0;

    if (!plan_is_valid(params)) {
        return BLOOM_INVALID;
    }
    if (params->kind == BLOOM_AGEING) {
        return project_generation(params, size_limit_bytes, target, ret_total);
    }
    while (target == 0 || total < target) {
        /* valkey-bloom makes such a first layer, but never projects one. */
        status = plan.count == 0 && params->error_rate <= DBL_MIN
                     ? BLOOM_RATE_ZERO
                     : plan_next(params, &plan, size_limit_bytes, &next);
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

uint64_t
plan_largest(const struct bloom_params *params, uint64_t size_limit_bytes)
{
    const struct plan none = { .parts = plan_parts(params) };
    struct bloom_params tried = *params;
    uint64_t fits = 0;
    uint64_t least = BLOOM_CAPACITY_MAX; /* the most that may still fit */
    struct plan_layer next;

    tried.lines = 0;
    tried.stripes = 0;
    while (fits < least) {
        tried.capacity = least - (least - fits) / 2;
        if (plan_next(&tried, &none, size_limit_bytes, &next) == BLOOM_OK) {
            fits = tried.capacity;
        } else {
            least = tried.capacity - 1;
        }
    }
    return fits;
}
