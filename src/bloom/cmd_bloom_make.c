/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BF.RESERVE and BF.INSERT. The grammar of the dialect parses their words; what
 * they do is the same. A request that replays a log has valkey-bloom's grammar.
 */
#include "access/handlers.h"
#include "bloom/adds.h"
#include "bloom/grammar_redis.h"
#include "bloom/grammar_valkey.h"
#include "core/plan.h"
#include "engine/keys.h"

/* Reports a creation with a time to live, behind its other events. */
static void
notify_expiry(struct request *req, const struct bloom_insert *insert)
{
    if (insert->expires_at_ms > 0 && observe_is_on(req)) {
        observe_event(req, &req->key, CONF_EVENT_GENERIC, "expire");
    }
}

enum err
cmd_bf_reserve(struct request *req)
{
    struct bloom_insert insert = { .no_create = false };
    struct bloom *bloom;
    enum err err;

    err = bloom_make_parse_reserve(req, 2, &insert);
    if (err != OK) {
        return err;
    }
    if (bloom_make_open(req) != NULL) {
        err = ERR_BF_EXISTS;
    } else {
        err = bloom_make_create(req, &insert, &bloom);
    }
    bloom_make_notify(req, false, err == OK);
    if (err == OK) {
        notify_expiry(req, &insert);
        reply_ok(req->reply);
    }
    return err;
}

/* Checks VALIDATESCALETO. Called before the key is looked up, and so before
 * NOCREATE is checked. */
static enum err
validate_target(struct request *req, const struct bloom_insert *insert)
{
    uint64_t limit = (uint64_t)req->service->conf->bf_memory_usage_limit;
    struct bloom_params params = insert->params;
    enum err err;

    if (!insert->has_target || req->obey) {
        return OK;
    }
    if (insert->params.expansion == 0) {
        return ERR_BF_VALIDATE_NONSCALING;
    }
    err = bloom_make_check_layout(req, &params);
    if (err != OK) {
        return err;
    }
    bloom_make_tighten(req, &params);
    switch (plan_project(&params, limit, insert->target, NULL)) {
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

/* Checks IFINCARNATION. A filter that forgets items is refused: it may have had
 * the items of this heal (heal/merge.h) and have forgotten them, and they must
 * not come back. */
static enum err
check_same(const struct bloom_insert *insert, const struct entry *entry)
{
    if (insert->same == 0) {
        return OK;
    }
    if (entry == NULL) {
        return ERR_BF_NOT_FOUND;
    }
    if (entry->incarnation != insert->same) {
        return ERR_BF_INCARNATION;
    }
    return bloom_kind(&entry->bloom) >= BLOOM_DELETABLE
               ? ERR_BF_INCARNATION_FORGETS
               : OK;
}

/* Repeats the adds of a log to a deletable filter. A command of our own that
 * creates the filter (replay/inject.h) has an effect of its own words, which
 * must list these items too. */
static enum err
redo_placed(struct request *req, const struct bloom_insert *insert,
            struct bloom *bloom)
{
    enum err err =
        adds_redo(req, bloom, insert->placed, insert->placed_count, false);

    if (err == OK) {
        request_effect_add(req, slice_lit("PLACED"));
        for (size_t i = 0; i < insert->placed_count; i++) {
            request_effect_add(req, insert->placed[i]);
        }
    }
    return err;
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
        .plain = bloom_make_reads_redis(req) || insert->has_own,
        .at_ms = insert->at_ms,
    };
    enum err err = OK;

    if (!adds.created && bloom_make_is_unready(bloom)) {
        return ERR_BF_INCOMPLETE;
    }
    if (adds.created && insert->no_create) {
        err = ERR_BF_NOT_FOUND;
    } else if (adds.created) {
        err = bloom_make_create(req, insert, &bloom);
    }
    if (err != OK) {
        bloom_make_notify(req, false, false);
        return err;
    }
    if (insert->placed_count > 0) {
        return redo_placed(req, insert, bloom);
    }
    err = adds_run(req, bloom, &adds);
    if (err == OK && adds.created) {
        notify_expiry(req, insert);
    }
    return err;
}

enum err
cmd_bf_insert(struct request *req)
{
    struct bloom_insert insert = { .no_create = false };
    struct entry *entry;
    enum err err;

    bloom_make_defaults(req, &insert.params);
    err = bloom_make_reads_redis(req) ? grammar_redis_insert(req, &insert)
                                      : grammar_valkey_insert(req, &insert);
    if (err == OK) {
        err = bloom_make_check_items(req, insert.count);
    }
    if (err == OK) {
        err = validate_target(req, &insert);
    }
    if (err == OK) {
        err = adds_touch(req, &insert);
    }
    if (err != OK) {
        return err;
    }
    entry = keys_open(req, &req->key);
    err = check_same(&insert, entry);
    return err == OK ? insert_items(req, &insert,
                                    entry != NULL ? &entry->bloom : NULL)
                     : err;
}
