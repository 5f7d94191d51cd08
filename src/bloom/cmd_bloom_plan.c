/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BF.PLAN, a map in RESP3 and else an array. It takes the words that follow the
 * key in a BF.RESERVE, under the same options, and makes nothing:
 *
 *   kind, capacity, error-rate  of the first layer
 *   bytes                       of the filter when it is made; of an ageing
 *                               one, when it has all generations
 *   bits-per-item               of its lines
 *   fits                        whether bf.bloom-memory-usage-limit allows it
 *   largest-capacity            that a BF.RESERVE with this rate may have
 *   layers                      an array of maps, one for each state of growth
 *                               under the limit: capacity and bytes of all
 *                               layers, bits-per-item, error-rate (of all
 *                               layers when they are full, at most). In kind
 *                               ageing, of all generations together
 */
#include "access/handlers.h"
#include "base/mem.h"
#include "bloom/bloom_make.h"
#include "core/plan.h"

enum { RATE_AT = 1, FIELDS = 8, LAYER_FIELDS = 4, BYTE_BITS = 8 };

/* The state of the filter while it grows. */
struct growth {
    struct plan plan;
    uint64_t capacity; /* of all layers */
    double rate;       /* of all layers together */
    uint32_t ring;     /* generations at the same time: plan_ring() */
    uint32_t share;    /* generations that share the capacity */
};

static struct growth
growth_of(const struct bloom_params *params)
{
    uint32_t ring = plan_ring(params);

    CHECK(ring > 0);
    return (struct growth){ .plan.parts = plan_parts(params),
                            .ring = ring,
                            .share = ring > 1 ? ring - 1 : 1 };
}

/* Makes NEXT the newest layer. */
static void
take_layer(const struct bloom_params *params, const struct plan_layer *next,
           struct growth *growth)
{
    uint64_t capacity = growth->plan.count == 0
                            ? params->capacity
                            : next->capacity * growth->share;

    growth->rate += sizing_layer_rate(params->error_rate, params->tightening,
                                      growth->plan.count);
    growth->capacity = capacity < BLOOM_CAPACITY_MAX - growth->capacity
                           ? growth->capacity + capacity
                           : BLOOM_CAPACITY_MAX;
    growth->plan.count++;
    growth->plan.capacity = next->capacity;
    growth->plan.line_bytes += next->line_bytes;
    growth->plan.module_bytes = next->module_bytes;
}

static double
bits_per_item(const struct growth *growth)
{
    return (double)growth->plan.line_bytes * growth->ring * BYTE_BITS /
           (double)growth->capacity;
}

/* Returns the bytes of the filter with all its generations. */
static uint64_t
all_bytes(const struct growth *growth)
{
    return plan_struct_bytes(growth->plan.parts,
                             growth->plan.count * growth->ring) +
           growth->plan.line_bytes * growth->ring;
}

/* ---- the states of growth, in pieces ------------------------------------- */

/* A plan of many layers, which is computed in pieces. */
struct planning {
    struct growth growth;
    struct buf layers; /* their replies */
    uint64_t limit;
};

static void
forget_plan(void *state)
{
    struct planning *planning = state;

    buf_free(&planning->layers);
    mem_free(planning);
}

static enum err
put_layers(struct request *req, const struct bloom_params *params,
           struct planning *planning)
{
    struct reply reply = { &planning->layers, req->reply->resp };
    struct growth *growth = &planning->growth;
    uint64_t limit = planning->limit;
    struct plan_layer next;

    for (uint32_t steps = 1;
         plan_next(params, &growth->plan, limit, &next) == BLOOM_OK &&
         (growth->ring == 1 || next.size_bytes <= limit / growth->ring);
         steps++) {
        take_layer(params, &next, growth);
        reply_map(&reply, LAYER_FIELDS);
        reply_named_int(&reply, "capacity", growth->capacity);
        reply_named_int(&reply, "bytes", all_bytes(growth));
        reply_named_double(&reply, "bits-per-item", bits_per_item(growth));
        reply_named_double(&reply, "error-rate",
                           growth->rate < 1 ? growth->rate : 1);
        if (request_piece_is_over(req, steps)) {
            return ERR_AGAIN;
        }
    }
    return planning->layers.failed
               ? planning->layers.over ? ERR_REPLY_LIMIT : ERR_NOMEM
               : OK;
}

/* ---- the reply ----------------------------------------------------------- */

static void
put_plan(struct request *req, const struct bloom_params *params,
         const struct plan_layer *first, struct planning *planning)
{
    uint64_t limit = planning->limit;
    struct reply *reply = req->reply;
    struct growth growth = growth_of(params);
    const struct plan none = growth.plan;
    struct plan_layer next;

    take_layer(params, first, &growth);
    reply_map(reply, FIELDS);
    reply_bulk_text(reply, "kind");
    reply_bulk_text(reply, bloom_kind_name((enum bloom_kind)params->kind));
    reply_named_int(reply, "capacity", params->capacity);
    reply_named_double(reply, "error-rate", params->error_rate);
    reply_named_int(reply, "bytes", all_bytes(&growth));
    reply_named_double(reply, "bits-per-item", bits_per_item(&growth));
    reply_named_int(reply, "fits",
                    plan_next(params, &none, limit, &next) == BLOOM_OK);
    reply_named_int(reply, "largest-capacity", plan_largest(params, limit));
    reply_bulk_text(reply, "layers");
    reply_array(reply, planning->growth.plan.count);
    reply_give(reply, &planning->layers, 0);
}

static enum err
plan(struct request *req, const struct bloom_params *params,
     const struct plan_layer *first)
{
    struct planning *planning = request_resumed(req);
    enum err err;

    if (planning == NULL) {
        planning = mem_try_zalloc(sizeof(*planning));
        if (planning == NULL) {
            return ERR_NOMEM;
        }
        planning->growth = growth_of(params);
        planning->layers.limit = req->reply->buf->limit;
        planning->limit = (uint64_t)req->service->conf->bf_memory_usage_limit;
    }
    err = put_layers(req, params, planning);
    if (err == OK) {
        put_plan(req, params, first, planning);
    }
    return request_end_piece(req, err, planning, forget_plan,
                             planning->layers.capacity);
}

enum err
cmd_bf_plan(struct request *req)
{
    struct bloom_insert insert = { .no_create = false };
    enum err err = bloom_make_parse_reserve(req, RATE_AT, &insert);
    struct plan none;
    struct plan_layer first;
    enum bloom_status status;

    if (err == OK) {
        err = bloom_make_check_layout(req, &insert.params);
    }
    if (err != OK) {
        return err;
    }
    if (insert.expires_at_ms > 0) {
        return ERR_SYNTAX; /* a time changes no size */
    }
    bloom_make_tighten(req, &insert.params);
    if (!plan_is_valid(&insert.params)) {
        return bloom_make_error(req, BLOOM_INVALID);
    }
    none = (struct plan){ .parts = plan_parts(&insert.params) };
    status = plan_next(&insert.params, &none, UINT64_MAX, &first);
    if (status != BLOOM_OK) {
        return bloom_make_error(req, status);
    }
    return plan(req, &insert.params, &first);
}
