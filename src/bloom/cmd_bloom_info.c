/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BF.INFO, with the reply shapes of both dialects, and BF.DEBUG of RedisBloom,
 * which is the same in both.
 */
#include "access/handlers.h"
#include "bloom/bloom_make.h"
#include "core/foreign.h"
#include "core/plan.h"
#include "core/stream.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- BF.INFO ------------------------------------------------------------- */

enum info_field {
    INFO_CAPACITY,
    INFO_SIZE,
    INFO_FILTERS,
    INFO_ITEMS,
    INFO_ERROR,
    INFO_EXPANSION,
    INFO_TIGHTENING,
    INFO_MAXSCALED,
    INFO_FIELDS
};

/* The first INFO_TIGHTENING fields are shown for every filter, the rest for
 * scaling filters. RedisBloom has five fields, and go-redis fails on a sixth.
 */
static const struct {
    const char *word, *label;
    bool redis;
} info_names[INFO_FIELDS] = {
    [INFO_CAPACITY] = { "capacity", "Capacity", true },
    [INFO_SIZE] = { "size", "Size", true },
    [INFO_FILTERS] = { "filters", "Number of filters", true },
    [INFO_ITEMS] = { "items", "Number of items inserted", true },
    [INFO_ERROR] = { "error", "Error rate", false },
    [INFO_EXPANSION] = { "expansion", "Expansion rate", true },
    [INFO_TIGHTENING] = { "tightening", "Tightening ratio", false },
    [INFO_MAXSCALED] = { "maxscaledcapacity", "Max scaled capacity", false },
};

struct shown {
    struct bloom_info info;
    struct bloom_params params;
    uint64_t max_scaled;
};

static void
show_value(struct request *req, const struct shown *shown,
           enum info_field field)
{
    switch (field) {
    case INFO_CAPACITY:
        reply_int(req->reply, (int64_t)shown->info.capacity);
        break;
    case INFO_SIZE:
        reply_int(req->reply, (int64_t)shown->info.size_bytes);
        break;
    case INFO_FILTERS:
        reply_int(req->reply, shown->info.layers);
        break;
    case INFO_ITEMS:
        reply_int(req->reply, (int64_t)shown->info.items);
        break;
    case INFO_ERROR:
        reply_double(req->reply, shown->params.error_rate);
        break;
    case INFO_EXPANSION:
        if (shown->params.expansion > 0) {
            reply_int(req->reply, shown->params.expansion);
        } else {
            reply_null(req->reply);
        }
        break;
    case INFO_TIGHTENING:
        reply_double(req->reply, shown->params.tightening);
        break;
    default:
        reply_int(req->reply, (int64_t)shown->max_scaled);
        break;
    }
}

static void
show_named(struct request *req, const struct shown *shown,
           enum info_field field)
{
    reply_simple(req->reply, info_names[field].label);
    show_value(req, shown, field);
}

/* Replies with all fields: in RESP3 a map in dialect redis, else an array. */
static void
show_all(struct request *req, const struct shown *shown)
{
    size_t fields = shown->params.expansion > 0 ? INFO_FIELDS : INFO_TIGHTENING;
    bool redis = dialect_is_redis(req->service);

    if (redis) {
        reply_map(req->reply, 5);
    } else {
        reply_array(req->reply, fields * 2);
    }
    for (size_t i = 0; i < fields; i++) {
        if (!redis || info_names[i].redis) {
            show_named(req, shown, (enum info_field)i);
        }
    }
}

/* Replies with one field: the value, or in dialect redis an array of it, in
 * RESP3 a map. */
static void
show_one(struct request *req, const struct shown *shown, enum info_field field)
{
    if (!dialect_is_redis(req->service)) {
        show_value(req, shown, field);
    } else if (req->reply->resp == 3) {
        reply_map(req->reply, 1);
        show_named(req, shown, field);
    } else {
        reply_array(req->reply, 1);
        show_value(req, shown, field);
    }
}

static enum info_field
find_field(const struct request *req, uint32_t expansion)
{
    size_t fields = expansion > 0 ? INFO_FIELDS : INFO_TIGHTENING;
    bool redis = dialect_is_redis(req->service);

    for (size_t i = 0; i < fields; i++) {
        if (slice_is_word(req->argv[2], info_names[i].word) &&
            (!redis || info_names[i].redis)) {
            return (enum info_field)i;
        }
    }
    return INFO_FIELDS;
}

/* Computes the capacity that the filter can grow to, if the field needs it. */
static enum err
project(const struct request *req, struct shown *shown, enum info_field field)
{
    uint64_t limit = (uint64_t)req->service->conf->bf_memory_usage_limit;

    if (shown->params.expansion == 0 || dialect_is_redis(req->service) ||
        (field != INFO_FIELDS && field != INFO_MAXSCALED)) {
        return OK;
    }
    return plan_project(&shown->params, limit, 0, &shown->max_scaled) ==
                   BLOOM_OVERFLOW
               ? ERR_BF_CAPACITY
               : OK;
}

enum err
cmd_bf_info(struct request *req)
{
    enum info_field field = INFO_FIELDS;
    struct shown shown = {
        .info = { .struct_size = sizeof(shown.info) },
        .params = { .struct_size = sizeof(shown.params) },
    };
    const struct bloom *bloom;
    enum err err;

    if (req->argc > 3) {
        return request_arity_error(req);
    }
    bloom = bloom_make_find(req);
    if (bloom == NULL) {
        return ERR_BF_NOT_FOUND;
    }
    bloom_get_info(bloom, &shown.info);
    shown.info.items = ageing_items(bloom, req->now_ms);
    bloom_get_params(bloom, &shown.params);
    if (req->argc == 3) {
        field = find_field(req, shown.params.expansion);
        if (field == INFO_FIELDS) {
            return dialect_is_redis(req->service) ? ERR_BFR_INFO_VALUE
                                                  : ERR_BF_INFO_VALUE;
        }
    }
    err = project(req, &shown, field);
    if (err != OK) {
        return err;
    }
    if (field == INFO_FIELDS) {
        show_all(req, &shown);
    } else {
        show_one(req, &shown, field);
    }
    return OK;
}

/* ---- BF.DEBUG ------------------------------------------------------------ */

/* Replies with one layer in RedisBloom's words. bytes and bits are those of its
 * lines, or of its bits in a foreign layout; hashes is how many bits an item
 * sets, 8 in each stripe of a native layer (core/layer.h); hashwidth is the
 * width of the hash; capacity and size count items; ratio is the error rate
 * that the layer was made for; age is the number of turns of an ageing filter
 * between the layer's own turn and the filter's last add (core/ageing.h). */
static void
show_layer(struct request *req, const struct bloom *bloom, uint32_t index,
           const struct bloom_layer_info *layer)
{
    const struct bloom_extra *extra = bloom_extra_of(bloom);
    bool foreign = foreign_is(bloom_kind(bloom));
    bool narrow = bloom_kind(bloom) == BLOOM_REDISBLOOM && extra != NULL &&
                  (extra->options & REDISBLOOM_FORCE64) == 0;
    uint64_t bytes = foreign ? foreign_bytes(layer->lines)
                             : layer->lines * layer->stripes * BLOOM_LINE_BYTES;
    char text[224];
    int len = snprintf(text, sizeof(text),
                       "bytes:%" PRIu64 " bits:%" PRIu64
                       " hashes:%u hashwidth:%d capacity:%" PRIu64
                       " size:%" PRIu64 " ratio:%g",
                       bytes, foreign ? layer->lines : bytes * 8, layer->hashes,
                       narrow ? 32 : 64, layer->capacity, layer->items,
                       bloom_asked_rate(bloom, index));

    if (bloom_kind(bloom) == BLOOM_AGEING) {
        len += snprintf(text + len, sizeof(text) - (size_t)len, " age:%u",
                        bloom_layers_const(bloom)[index].age);
    }

    reply_bulk(req->reply, (struct slice){ text, (size_t)len });
}

enum err
cmd_bf_debug(struct request *req)
{
    const struct bloom *bloom = bloom_make_find(req);
    struct bloom_layer_info layer = { .struct_size = sizeof(layer) };
    struct bloom_info info = { .struct_size = sizeof(info) };
    char text[96];
    int len;

    if (bloom == NULL) {
        return ERR_BF_NOT_FOUND;
    }
    bloom_get_info(bloom, &info);
    len = snprintf(text, sizeof(text), "size:%" PRIu64 " layout:%s", info.items,
                   bloom_kind_name(bloom_kind(bloom)));
    if (bloom_is_keyed(bloom)) {
        len += snprintf(text + len, sizeof(text) - (size_t)len, " hash:keyed");
    }
    if (bloom_is_incomplete(bloom)) {
        len += snprintf(text + len, sizeof(text) - (size_t)len,
                        " missing:%" PRIu64, stream_missing(bloom));
    }
    reply_array(req->reply, 1 + (size_t)info.layers);
    reply_bulk(req->reply, (struct slice){ text, (size_t)len });
    for (uint32_t i = 0; bloom_get_layer(bloom, i, &layer); i++) {
        show_layer(req, bloom, i, &layer);
    }
    return OK;
}
