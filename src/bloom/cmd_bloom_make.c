/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BF.RESERVE and BF.INSERT. The grammar of the dialect parses their words; what
 * they do is the same. A request that replays a log has valkey-bloom's grammar.
 */
#include "bloom/bloom_make.h"
#include "bloom/grammar_redis.h"
#include "bloom/grammar_valkey.h"
#include "core/plan.h"
#include "engine/handlers.h"

/* Returns whether the request has RedisBloom's grammar. */
static bool
reads_redis(const struct request *req)
{
    return !req->obey && dialect_is_redis(req->service);
}

enum err
cmd_bf_reserve(struct request *req)
{
    struct bloom_params params;
    struct bloom *bloom;
    enum err err;

    bloom_make_defaults(req, &params);
    err = reads_redis(req) ? grammar_redis_reserve(req, &params)
                           : grammar_valkey_reserve(req, &params);
    if (err != OK) {
        return err;
    }
    if (bloom_make_open(req) != NULL) {
        err = ERR_BF_EXISTS;
    } else {
        err = bloom_make_create(req, &params, 0, 0, &bloom);
    }
    bloom_make_notify(req, false, err == OK);
    if (err == OK) {
        reply_ok(req->reply);
    }
    return err;
}

/* Checks VALIDATESCALETO. Before the key is looked up, so also before
 * NOCREATE. */
static enum err
validate_target(const struct request *req, const struct bloom_insert *insert)
{
    uint64_t limit = (uint64_t)req->service->conf->bf_memory_usage_limit;

    if (!insert->has_target || req->obey) {
        return OK;
    }
    if (insert->params.expansion == 0) {
        return ERR_BF_VALIDATE_NONSCALING;
    }
    switch (plan_project(&insert->params, limit, insert->target, NULL)) {
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

/* Creates the filter if it is missing, and adds the items. */
static enum err
insert_items(struct request *req, const struct bloom_insert *insert,
             struct bloom *bloom)
{
    struct bloom_adds adds = {
        .items = insert->items,
        .count = insert->count,
        .created = bloom == NULL || insert->incarnation != 0,
        .plain = reads_redis(req),
    };
    enum err err = OK;

    if (adds.created && insert->no_create) {
        err = ERR_BF_NOT_FOUND;
    } else if (adds.created) {
        err = bloom_make_create(req, &insert->params, insert->incarnation,
                                adds.count, &bloom);
    }
    if (err != OK) {
        bloom_make_notify(req, false, false);
        return err;
    }
    return bloom_make_add_items(req, bloom, &adds);
}

enum err
cmd_bf_insert(struct request *req)
{
    struct bloom_insert insert = { .no_create = false };
    enum err err;

    bloom_make_defaults(req, &insert.params);
    err = reads_redis(req) ? grammar_redis_insert(req, &insert)
                           : grammar_valkey_insert(req, &insert);
    if (err == OK) {
        err = bloom_make_check_items(req, insert.count);
    }
    if (err == OK) {
        err = validate_target(req, &insert);
    }
    return err == OK ? insert_items(req, &insert, bloom_make_open(req)) : err;
}
