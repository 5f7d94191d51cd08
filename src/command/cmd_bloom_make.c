/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BF.RESERVE, BF.INSERT, BF.INFO. Ranges, order of checks and texts are those
 * of valkey-bloom 1.0.1.
 */
#include "command/bloom_make.h"

enum { RESERVE_PLAIN = 4, RESERVE_NONSCALING = 5, RESERVE_EXPANSION = 6 };

/* ---- BF.RESERVE ---------------------------------------------------------- */

/* The tail behind rate and capacity: nothing, NONSCALING, or EXPANSION n, each
 * valid at its own length only. */
static enum err
parse_scaling(struct request *req, struct bloom_params *params)
{
    if (req->argc == RESERVE_PLAIN) {
        return OK;
    }
    if (req->argc == RESERVE_NONSCALING &&
        slice_is_word(req->argv[4], "nonscaling")) {
        params->expansion = 0;
        return OK;
    }
    if (req->argc == RESERVE_EXPANSION &&
        slice_is_word(req->argv[4], "expansion")) {
        return bloom_make_parse_expansion(req->argv[5], &params->expansion);
    }
    return ERR_BF_FAILED;
}

enum err
cmd_bf_reserve(struct request *req)
{
    struct bloom_params params;
    struct bloom *bloom;
    enum err err;

    if (req->argc > RESERVE_EXPANSION) {
        return request_fail(req, ERR_ARITY, "%s", req->command->name);
    }
    bloom_make_defaults(req, &params);
    err = bloom_make_parse_rate(req->argv[2], &params.error_rate);
    if (err == OK) {
        err = bloom_make_parse_capacity(req->argv[3], &params.capacity);
    }
    if (err == OK) {
        err = parse_scaling(req, &params);
    }
    if (err == OK && bloom_make_open(req) != NULL) {
        err = ERR_BF_EXISTS;
    }
    if (err == OK) {
        err = bloom_make_create(req, &params, 0, 0, &bloom);
    }
    if (err == OK) {
        reply_ok(req->reply);
    }
    return err;
}

/* ---- BF.INSERT ----------------------------------------------------------- */

struct insert {
    struct bloom_params params;
    bool no_create, has_target;
    uint64_t target;      /* VALIDATESCALETO */
    uint64_t incarnation; /* of a replayed creation; else 0 */
    const struct slice *items;
    size_t count;
};

static enum err
parse_seed(struct slice seed, struct bloom_params *params)
{
    if (seed.len != BLOOM_SEED_BYTES) {
        return ERR_BF_SEED;
    }
    memcpy(params->seed, seed.data, BLOOM_SEED_BYTES);
    return OK;
}

static enum err
parse_shape(struct slice text, uint64_t max, uint64_t *ret_value)
{
    return slice_to_u64(text, ret_value) && *ret_value > 0 && *ret_value <= max
               ? OK
               : ERR_BF_UNKNOWN_ARG;
}

/* STRIPES, LINES and INCARNATION of a replayed creation. */
static enum err
parse_obeyed(struct slice word, struct slice value, struct insert *insert)
{
    struct bloom_params *params = &insert->params;
    uint64_t stripes = 0;
    enum err err;

    if (slice_is_word(word, "lines")) {
        return parse_shape(value, UINT64_MAX, &params->lines);
    }
    if (slice_is_word(word, "incarnation")) {
        return parse_shape(value, UINT64_MAX, &insert->incarnation);
    }
    if (!slice_is_word(word, "stripes")) {
        return ERR_BF_UNKNOWN_ARG;
    }
    err = parse_shape(value, UINT32_MAX, &stripes);
    params->stripes = (uint32_t)stripes;
    return err;
}

static enum err
parse_valued(const struct request *req, struct slice word, struct slice value,
             struct insert *insert)
{
    if (slice_is_word(word, "error")) {
        return bloom_make_parse_rate(value, &insert->params.error_rate);
    }
    if (slice_is_word(word, "capacity")) {
        return bloom_make_parse_capacity(value, &insert->params.capacity);
    }
    if (slice_is_word(word, "expansion")) {
        return bloom_make_parse_expansion(value, &insert->params.expansion);
    }
    if (slice_is_word(word, "tightening")) {
        return bloom_make_parse_tightening(value, &insert->params.tightening);
    }
    if (slice_is_word(word, "seed")) {
        return parse_seed(value, &insert->params);
    }
    if (slice_is_word(word, "validatescaleto")) {
        insert->has_target = true;
        return bloom_make_parse_capacity(value, &insert->target);
    }
    return req->obey ? parse_obeyed(word, value, insert) : ERR_BF_UNKNOWN_ARG;
}

/* True for words that take a value, so that one without it is an arity error
 * and any other word an unknown argument, in argument order. */
static bool
takes_value(const struct request *req, struct slice word)
{
    enum { OBEYED = 3 }; /* the first ones are for who obeys */
    static const char *const words[] = {
        "stripes",   "lines",      "incarnation", "error",          "capacity",
        "expansion", "tightening", "seed",        "validatescaleto"
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (slice_is_word(word, words[i])) {
            return i >= OBEYED || req->obey;
        }
    }
    return false;
}

static enum err
parse_insert(struct request *req, struct insert *insert)
{
    size_t at = 2;

    while (at < req->argc) {
        struct slice word = req->argv[at++];
        enum err err;

        if (slice_is_word(word, "nonscaling")) {
            insert->params.expansion = 0;
        } else if (slice_is_word(word, "nocreate")) {
            insert->no_create = true;
        } else if (slice_is_word(word, "items")) {
            insert->items = req->argv + at;
            insert->count = req->argc - at;
            return insert->count > 0
                       ? OK
                       : request_fail(req, ERR_ARITY, "%s", req->command->name);
        } else if (!takes_value(req, word)) {
            return ERR_BF_UNKNOWN_ARG;
        } else if (at == req->argc) {
            return request_fail(req, ERR_ARITY, "%s", req->command->name);
        } else {
            err = parse_valued(req, word, req->argv[at++], insert);
            if (err != OK) {
                return err;
            }
        }
    }
    return OK;
}

/* Comes before the key is looked at, so that it also precedes NOCREATE. */
static enum err
validate_target(const struct request *req, const struct insert *insert)
{
    uint64_t limit = (uint64_t)req->service->conf->bf_memory_usage_limit;

    if (!insert->has_target || req->obey) {
        return OK;
    }
    if (insert->params.expansion == 0) {
        return ERR_BF_VALIDATE_NONSCALING;
    }
    switch (bloom_project(&insert->params, limit, insert->target, NULL)) {
    case BLOOM_OK:
        return OK;
    case BLOOM_RATE_ZERO:
        return ERR_BF_VALIDATE_RATE;
    case BLOOM_OVERFLOW:
        return ERR_BF_CAPACITY;
    case BLOOM_MAX_LAYERS:
        return ERR_BF_MAX_LAYERS;
    default:
        return ERR_BF_VALIDATE_LIMIT;
    }
}

enum err
cmd_bf_insert(struct request *req)
{
    struct insert insert = { .no_create = false };
    struct bloom *bloom;
    bool created;
    enum err err;

    bloom_make_defaults(req, &insert.params);
    err = parse_insert(req, &insert);
    if (err == OK) {
        err = validate_target(req, &insert);
    }
    if (err != OK) {
        return err;
    }
    bloom = bloom_make_open(req);
    created = bloom == NULL || insert.incarnation != 0;
    if (created && insert.no_create) {
        return ERR_BF_NOT_FOUND;
    }
    if (created) {
        err = bloom_make_create(req, &insert.params, insert.incarnation,
                                insert.count, &bloom);
    }
    if (err == OK) {
        err = bloom_make_add_items(req, bloom, insert.items, insert.count,
                                   created);
    }
    return err;
}

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
 * those that scale. */
static const struct {
    const char *word, *label;
} info_names[INFO_FIELDS] = {
    [INFO_CAPACITY] = { "capacity", "Capacity" },
    [INFO_SIZE] = { "size", "Size" },
    [INFO_FILTERS] = { "filters", "Number of filters" },
    [INFO_ITEMS] = { "items", "Number of items inserted" },
    [INFO_ERROR] = { "error", "Error rate" },
    [INFO_EXPANSION] = { "expansion", "Expansion rate" },
    [INFO_TIGHTENING] = { "tightening", "Tightening ratio" },
    [INFO_MAXSCALED] = { "maxscaledcapacity", "Max scaled capacity" },
};

struct shown {
    struct bloom_info info;
    struct bloom_params params;
    uint64_t max_scaled;
};

static enum err
show_field(struct request *req, const struct shown *shown,
           enum info_field field)
{
    switch (field) {
    case INFO_CAPACITY:
        reply_int(req->reply, (int64_t)shown->info.capacity);
        break;
    case INFO_SIZE:
        reply_int(req->reply, (int64_t)shown->info.size);
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
    return OK;
}

static enum err
show_all(struct request *req, const struct shown *shown)
{
    size_t fields = shown->params.expansion > 0 ? INFO_FIELDS : INFO_TIGHTENING;

    reply_array(req->reply, fields * 2);
    for (size_t i = 0; i < fields; i++) {
        reply_simple(req->reply, info_names[i].label);
        (void)show_field(req, shown, (enum info_field)i);
    }
    return OK;
}

static enum info_field
find_field(struct slice word, uint32_t expansion)
{
    size_t fields = expansion > 0 ? INFO_FIELDS : INFO_TIGHTENING;

    for (size_t i = 0; i < fields; i++) {
        if (slice_is_word(word, info_names[i].word)) {
            return (enum info_field)i;
        }
    }
    return INFO_FIELDS;
}

enum err
cmd_bf_info(struct request *req)
{
    enum info_field field = INFO_FIELDS;
    struct shown shown = { .max_scaled = 0 };
    struct bloom *bloom;

    if (req->argc > 3) {
        return request_fail(req, ERR_ARITY, "%s", req->command->name);
    }
    bloom = bloom_make_find(req);
    if (bloom == NULL) {
        return ERR_BF_NOT_FOUND;
    }
    bloom_get_info(bloom, &shown.info);
    bloom_get_params(bloom, &shown.params);
    if (req->argc == 3) {
        field = find_field(req->argv[2], shown.params.expansion);
        if (field == INFO_FIELDS) {
            return ERR_BF_INFO_VALUE;
        }
    }
    if (shown.params.expansion > 0 &&
        (field == INFO_FIELDS || field == INFO_MAXSCALED)) {
        uint64_t limit = (uint64_t)req->service->conf->bf_memory_usage_limit;

        if (bloom_project(&shown.params, limit, 0, &shown.max_scaled) ==
            BLOOM_OVERFLOW) {
            return ERR_BF_CAPACITY;
        }
    }
    return field == INFO_FIELDS ? show_all(req, &shown)
                                : show_field(req, &shown, field);
}
