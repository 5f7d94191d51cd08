/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BF.STATS, a map in RESP3 and else an array, the same in both dialects:
 *
 *   kind, items, capacity, bytes as BF.INFO and OBJECT ENCODING have them
 *   error-rate-asked            of the first layer
 *   error-rate                  at which absent items are found now
 *   items-until-next-layer      of a nonscaling filter: until it is full
 *   items-until-limit           until an add fails, under the present
 *                               bf.bloom-memory-usage-limit
 *   sampled                     the share of the lines that was read
 *   hash                        plain or keyed (core/keyed.h)
 *   layers                      an array of maps: items, capacity, bits,
 *                               bits-set, error-rate-asked, error-rate
 *
 * An ageing filter has seconds and generations before the layers. Its figures
 * are those of the generations that are live now, and each layer has its age:
 * the milliseconds since its generation began.
 *
 * Of a large filter it reads a sample, so that the lock is not held for long.
 */
#include "bloom/bloom_make.h"
#include "core/measure.h"
#include "engine/handlers.h"

enum { LINES_READ = 1 << 16 /* of all layers, about */ };

struct stats_of_filter {
    double clean; /* chance that no layer finds an absent item */
    double lines, lines_read;
};

static void
put_layer(struct reply *reply, const struct bloom *bloom, uint32_t index,
          const struct measured *measured, uint64_t now_ms)
{
    struct bloom_layer_info info = { .struct_size = sizeof(info) };
    bool ages = bloom_kind(bloom) == BLOOM_AGEING;

    CHECK(bloom_get_layer(bloom, index, &info));
    reply_map(reply, ages ? 7 : 6);
    reply_named_int(reply, "items", info.items);
    reply_named_int(reply, "capacity", info.capacity);
    reply_named_int(reply, "bits", measured->bits);
    reply_named_int(reply, "bits-set", (uint64_t)(measured->ones + 0.5));
    reply_named_double(reply, "error-rate-asked",
                       bloom_asked_rate(bloom, index));
    reply_named_double(reply, "error-rate", measured->rate);
    if (ages) {
        reply_named_int(reply, "age", ageing_age_ms(bloom, index, now_ms));
    }
}

/* Appends all layers to `to`, and returns what they are together. */
static struct stats_of_filter
put_layers(struct reply *to, const struct bloom *bloom, uint64_t now_ms)
{
    struct stats_of_filter all = { .clean = 1 };
    uint64_t share = measure_share(bloom, LINES_READ);
    struct measured measured;

    uint32_t live = ageing_layers(bloom, now_ms);

    reply_array(to, live);
    for (uint32_t i = bloom->count - live;
         measure_layer(bloom, i, share, &measured); i++) {
        put_layer(to, bloom, i, &measured, now_ms);
        all.clean *= 1 - measured.rate;
        all.lines += (double)measured.lines;
        all.lines_read += (double)measured.lines_read;
    }
    return all;
}

/* Appends how many items there is room for: in the newest layer, or in the
 * first one of the generation that the next add begins; and below the limit. */
static void
put_room(struct reply *reply, const struct bloom *bloom, uint64_t limit,
         uint64_t now_ms)
{
    uint64_t fresh = ageing_room(bloom, now_ms);
    uint64_t layer = fresh > 0 ? fresh : measure_layer_room(bloom);
    uint64_t room = measure_room(bloom, limit);

    reply_named_int(reply, "items-until-next-layer", layer);
    reply_named_int(reply, "items-until-limit", room < layer ? layer : room);
}

enum err
cmd_bf_stats(struct request *req)
{
    const struct bloom *bloom = bloom_make_find(req);
    uint64_t limit = (uint64_t)req->service->conf->bf_memory_usage_limit;
    struct bloom_info info = { .struct_size = sizeof(info) };
    struct bloom_params params = { .struct_size = sizeof(params) };
    struct buf layers = { .limit = req->reply->buf->limit };
    struct reply into = { &layers, req->reply->resp };
    struct reply *reply = req->reply;
    struct stats_of_filter all;

    if (bloom == NULL || bloom_is_incomplete(bloom)) {
        return bloom == NULL ? ERR_BF_NOT_FOUND : ERR_BF_INCOMPLETE;
    }
    bloom_get_info(bloom, &info);
    bloom_get_params(bloom, &params);
    all = put_layers(&into, bloom, req->now_ms);
    if (layers.failed) {
        buf_free(&layers);
        return layers.over ? ERR_REPLY_LIMIT : ERR_NOMEM;
    }
    reply_map(reply, params.seconds > 0 ? 13 : 11);
    reply_bulk_text(reply, "kind");
    reply_bulk_text(reply, bloom_kind_name(bloom_kind(bloom)));
    reply_named_int(reply, "items", ageing_items(bloom, req->now_ms));
    reply_named_int(reply, "capacity", info.capacity);
    reply_named_int(reply, "bytes", info.size_bytes);
    reply_named_double(reply, "error-rate-asked", params.error_rate);
    reply_named_double(reply, "error-rate", 1 - all.clean);
    put_room(reply, bloom, limit, req->now_ms);
    reply_named_double(reply, "sampled",
                       all.lines > 0 ? all.lines_read / all.lines : 1);
    if (params.seconds > 0) {
        reply_named_int(reply, "seconds", params.seconds);
        reply_named_int(reply, "generations", params.generations);
    }
    reply_bulk_text(reply, "hash");
    reply_bulk_text(reply, bloom_is_keyed(bloom) ? "keyed" : "plain");
    reply_bulk_text(reply, "layers");
    reply_give(reply, &layers, 0);
    return OK;
}
