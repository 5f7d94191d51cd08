/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Creates filters, and the effects that create them again.
 */
#include "bloom/bloom_make.h"

#include "base/hex.h"
#include "base/num.h"
#include "base/random.h"
#include "bloom/grammar_redis.h"
#include "bloom/grammar_valkey.h"
#include "core/foreign.h"
#include "core/keyed.h"
#include "engine/keys.h"

#include <inttypes.h>

enum { CREATE_WORDS = 30 }; /* of the creating effect, before ITEMS */

void
bloom_make_defaults(const struct request *req, struct bloom_params *ret_params)
{
    const struct conf *conf = req->service->conf;
    double rate = conf->bf_fp_rate.value;

    if (rate > REDIS_RATE_MAX && dialect_is_redis(req->service)) {
        rate = REDIS_RATE_MAX;
    }
    *ret_params = (struct bloom_params){
        .struct_size = sizeof(struct bloom_params),
        .capacity = (uint64_t)conf->bf_capacity,
        .error_rate = rate,
        .tightening = conf->bf_tightening_ratio.value,
        .expansion = (uint32_t)conf->bf_expansion,
    };
    if (!req->obey) {
        ret_params->kind = (uint32_t)conf->bloom_layout;
        ret_params->flags = conf->bf_hash == CONF_HASH_KEYED ? BLOOM_KEYED : 0;
    }
    if (ret_params->kind == BLOOM_REDISBLOOM) {
        ret_params->tightening = REDIS_FIRST_TIGHTENING;
    } else if (conf->bf_use_random_seed) {
        bloom_seed(random_number(), ret_params->seed);
    } else {
        memcpy(ret_params->seed, bloom_seed_fixed, BLOOM_SEED_BYTES);
    }
}

enum err
bloom_make_parse_reserve(struct request *req, size_t first,
                         struct bloom_insert *insert)
{
    bloom_make_defaults(req, &insert->params);
    return bloom_make_reads_redis(req)
               ? grammar_redis_reserve(req, first, insert)
               : grammar_valkey_reserve(req, first, insert);
}

enum err
bloom_make_error(const struct request *req, enum bloom_status status)
{
    static const enum err errors[] = {
        [BLOOM_OK] = OK,
        [BLOOM_FULL] = ERR_BF_FULL,
        [BLOOM_LIMIT] = ERR_BF_LIMIT,
        [BLOOM_NOMEM] = ERR_NOMEM,
        [BLOOM_RATE_ZERO] = ERR_BF_RATE_ZERO,
        [BLOOM_OVERFLOW] = ERR_BF_CAPACITY,
        [BLOOM_MAX_LAYERS] = ERR_BF_MAX_LAYERS,
        [BLOOM_OVERFULL] = ERR_BF_MERGE_FULL,
        [BLOOM_INVALID] = ERR_BF_FAILED,
        [BLOOM_CORRUPT] = ERR_BF_FAILED,
        [BLOOM_VERSION] = ERR_BF_FAILED,
        [BLOOM_SECRET] = ERR_BF_SECRET,
    };

    if (status == BLOOM_NOMEM && req->service->memory.maxmemory_bytes > 0) {
        return ERR_OOM;
    }
    return errors[status];
}

enum err
bloom_make_secret_error(struct request *req, uint64_t fingerprint)
{
    return request_fail(req, ERR_BF_SECRET_OTHER, "%016" PRIx64, fingerprint);
}

/* Returns the error for a filter that could not be made. */
static enum err
creation_error(const struct request *req, enum bloom_status status)
{
    enum err err = bloom_make_error(req, status);

    if (dialect_is_redis(req->service) && err == ERR_NOMEM) {
        return ERR_BFR_CREATE_MEMORY;
    }
    return dialect_is_redis(req->service) && err == ERR_BF_FAILED
               ? ERR_BFR_CREATE
               : err;
}

enum err
bloom_make_add_error(const struct request *req, enum bloom_status status)
{
    enum err err = bloom_make_error(req, status);

    return dialect_is_redis(req->service) && status != BLOOM_FULL &&
                   status != BLOOM_LIMIT && err != ERR_OOM
               ? ERR_BFR_INSERTING
               : err;
}

void
bloom_make_notify_slow(struct request *req, bool added, bool created)
{
    const char *event = created ? "bloom.reserve" : NULL;

    observe_change_slow(req, &req->key, FEED_NOTHING, CONF_EVENT_GENERIC,
                        added ? "bloom.add" : event);
    if (added && created) {
        observe_event(req, &req->key, CONF_EVENT_GENERIC, event);
    }
}

struct bloom *
bloom_make_open(struct request *req)
{
    struct entry *entry = keys_open(req, &req->key);

    return entry != NULL ? &entry->bloom : NULL;
}

struct bloom *
bloom_make_find(struct request *req)
{
    struct entry *entry = keys_find(req, &req->key);

    return entry != NULL ? &entry->bloom : NULL;
}

/* ---- the creating effect ------------------------------------------------- */

static void
add_number(struct request *req, const char *word, uint64_t number)
{
    request_effect_add(req, slice_of(word));
    request_effect_add_number(req, number);
}

static void
add_rate(struct request *req, const char *word, double rate)
{
    char text[NUM_PLAIN_MAX];
    size_t len = num_format_plain(rate, text);

    request_effect_add(req, slice_of(word));
    request_effect_add(req,
                       request_arena_copy(req, (struct slice){ text, len }));
}

/* Names the secret by its fingerprint, since the log must not have the secret.
 */
static void
describe_key(struct request *req, uint64_t fingerprint)
{
    char digits[HEX_U64_CHARS];

    hex_put_u64(digits, fingerprint);
    request_effect_add(req, slice_lit("HASH"));
    request_effect_add(req, slice_lit("keyed"));
    request_effect_add(req, slice_lit("FINGERPRINT"));
    request_effect_add(
        req, request_arena_copy(req, (struct slice){ digits, sizeof(digits) }));
}

enum err
bloom_make_begin_again(struct request *req)
{
    return request_effect_begin(req, CREATE_WORDS);
}

void
bloom_make_describe(struct request *req, const struct bloom *bloom,
                    uint64_t incarnation, uint64_t expires_at_ms)
{
    struct bloom_params made = { .struct_size = sizeof(made) };
    struct slice seed = { (const char *)made.seed, BLOOM_SEED_BYTES };

    if (req->effect.kind != EFFECT_REWRITTEN) {
        return; /* the effect has no words of its own */
    }
    bloom_get_params(bloom, &made);
    request_effect_add(req, slice_lit("BF.INSERT"));
    request_effect_add(req, req->key.name);
    add_number(req, "CAPACITY", made.capacity);
    add_rate(req, "ERROR", made.error_rate);
    add_rate(req, "TIGHTENING", made.tightening);
    request_effect_add(req, slice_lit("SEED"));
    request_effect_add(req, request_arena_copy(req, seed));
    if (made.expansion > 0) {
        add_number(req, "EXPANSION", made.expansion);
    } else {
        request_effect_add(req, slice_lit("NONSCALING"));
    }
    if (made.kind == BLOOM_DELETABLE) {
        add_number(req, "DELETABLE", made.region);
    } else if (made.kind == BLOOM_AGEING) {
        add_number(req, "AGEING", made.seconds);
        add_number(req, "GENERATIONS", made.generations);
        add_number(req, "AT", made.now_ms);
    } else if (made.kind != BLOOM_NATIVE) {
        request_effect_add(req, slice_lit("LAYOUT"));
        request_effect_add(req, slice_of(bloom_kind_name(bloom_kind(bloom))));
    }
    if (made.flags == BLOOM_EXPANSION_ZERO) {
        add_number(req, "GROWTH", 0);
    }
    if (made.flags == BLOOM_KEYED) {
        describe_key(req, made.fingerprint);
    }
    add_number(req, "STRIPES", made.stripes);
    add_number(req, "LINES", made.lines);
    add_number(req, "INCARNATION", incarnation);
    if (expires_at_ms > 0) {
        add_number(req, "PXAT", expires_at_ms);
    }
}

uint64_t
bloom_make_incarnation(uint64_t incarnation)
{
    while (incarnation == 0) {
        incarnation = random_number();
    }
    return incarnation;
}

enum err
bloom_make_settle(struct request *req, struct bloom *bloom,
                  uint64_t incarnation, struct bloom **ret_bloom)
{
    struct entry *entry;
    enum err err;

    if (req->obey) {
        (void)keyspace_delete(req->keyspace, &req->key, req->now_ms);
    }
    err = keyspace_insert(req->keyspace, &req->key, bloom, incarnation, &entry);
    if (err == OK) {
        *ret_bloom = &entry->bloom;
    }
    return err;
}

/* RedisBloom gives the first layer of a scaling filter half of the requested
 * rate, so that all layers together stay below it. The effect has the halved
 * rate, so a replay does not halve it again. */
void
bloom_make_tighten(const struct request *req, struct bloom_params *params)
{
    if (!req->obey && params->expansion > 0 &&
        (dialect_is_redis(req->service) || params->kind == BLOOM_REDISBLOOM)) {
        params->error_rate *= REDIS_FIRST_TIGHTENING;
    }
}

enum err
bloom_make_check_layout(struct request *req, const struct bloom_params *params)
{
    static const uint8_t none[BLOOM_SEED_BYTES];

    if (params->kind >= BLOOM_DELETABLE &&
        req->service->conf->bloom_layout != BLOOM_NATIVE && !req->obey) {
        return ERR_BF_FORGETS_LAYOUT;
    }
    if (foreign_is(params->kind) && (params->flags & BLOOM_KEYED) != 0) {
        return ERR_BF_HASH_LAYOUT;
    }
    if (params->kind != BLOOM_REDISBLOOM || req->obey) {
        return OK;
    }
    if (memcmp(params->seed, none, sizeof(none)) != 0) {
        return request_fail(req, ERR_BF_LAYOUT, "%s", "seed");
    }
    return params->tightening != REDIS_FIRST_TIGHTENING
               ? request_fail(req, ERR_BF_LAYOUT, "%s",
                              "tightening ratio but 0.5")
               : OK;
}

/* Gives the new filter its time to live, or removes it on failure. */
static enum err
set_expiry(struct request *req, uint64_t expires_at_ms)
{
    struct entry *entry = keyspace_find(req->keyspace, &req->key, req->now_ms);
    enum err err;

    CHECK(entry != NULL);
    err = keyspace_set_expiry(req->keyspace, &req->key, entry, expires_at_ms);
    if (err != OK) {
        (void)keyspace_delete(req->keyspace, &req->key, req->now_ms);
    }
    return err;
}

/* Completes the properties of a new filter. */
static enum err
complete(struct request *req, const struct bloom_insert *insert,
         struct bloom_params *params)
{
    enum err err = bloom_make_check_layout(req, params);

    if (err != OK) {
        return err;
    }
    bloom_make_tighten(req, params);
    if ((params->flags & BLOOM_KEYED) != 0 && !insert->has_seed) {
        bloom_seed(random_number(), params->seed); /* whatever options say */
    }
    if (params->kind == BLOOM_AGEING) {
        params->now_ms = req->obey ? insert->at_ms : req->now_ms;
    }
    return OK;
}

struct bloom *
bloom_make_ahead(struct request *req, const struct bloom_insert *insert)
{
    struct bloom_params params = insert->params;
    struct bloom *bloom = NULL;

    return complete(req, insert, &params) == OK &&
                   bloom_new(&params, bloom_make_env(req), &bloom) == BLOOM_OK
               ? bloom
               : NULL;
}

/* Puts a new filter under the key. */
static enum bloom_status
put_new(struct request *req, const struct bloom_insert *insert,
        const struct bloom_params *params, uint64_t incarnation,
        struct entry **ret_entry)
{
    if (insert->made == NULL || *insert->made == NULL) {
        return keyspace_create(req->keyspace, &req->key, params,
                               bloom_make_env(req), incarnation, ret_entry);
    }
    if (keyspace_insert(req->keyspace, &req->key, *insert->made, incarnation,
                        ret_entry) != OK) {
        return BLOOM_NOMEM;
    }
    *insert->made = NULL;
    return BLOOM_OK;
}

enum err
bloom_make_create(struct request *req, const struct bloom_insert *insert,
                  struct bloom **ret_bloom)
{
    uint64_t incarnation = insert->incarnation;
    struct bloom_params params = insert->params;
    struct entry *old = NULL;
    struct entry *entry;
    enum bloom_status status;
    enum err err;

    if (req->obey && incarnation == 0) {
        return ERR_BF_NOT_FOUND;
    }
    if (req->obey && (params.flags & BLOOM_KEYED) != 0 &&
        !keyed_is_known(params.fingerprint)) {
        return bloom_make_secret_error(req, params.fingerprint);
    }
    err = complete(req, insert, &params);
    if (err != OK) {
        return err;
    }
    err = request_effect_begin(req, CREATE_WORDS + insert->placed_count +
                                        BLOOM_PLACED_WORDS(insert->count));
    if (err != OK) {
        return err;
    }
    incarnation = bloom_make_incarnation(incarnation);
    if (req->obey) {
        old = keyspace_open(req->keyspace, &req->key, req->now_ms, NULL);
    }
    status = put_new(req, insert, &params, incarnation, &entry);
    if (status != BLOOM_OK) {
        return creation_error(req, status);
    }
    if (old != NULL) {
        keyspace_remove(req->keyspace, &req->key, old);
    }
    *ret_bloom = &entry->bloom;
    if (insert->expires_at_ms > 0) {
        err = set_expiry(req, insert->expires_at_ms);
        if (err != OK) {
            return err;
        }
    }
    bloom_make_describe(req, *ret_bloom, incarnation, insert->expires_at_ms);
    req->dirty++;
    keys_made(req, &req->key);
    return OK;
}

enum err
bloom_make_check_items(struct request *req, size_t count)
{
    return !req->obey && count > (size_t)req->service->conf->bf_max_items
               ? ERR_BF_ITEMS
               : OK;
}
