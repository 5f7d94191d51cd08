/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Creation and multi-item adds.
 */
#include "bloom/bloom_make.h"

#include "base/num.h"
#include "base/random.h"
#include "bloom/grammar.h"
#include "engine/execute.h"
#include "engine/keys.h"

enum { CREATE_WORDS = 18 }; /* of the creating effect, before ITEMS */

void
bloom_make_defaults(const struct request *req, struct bloom_params *ret_params)
{
    const struct conf *conf = req->service->conf;
    double rate = conf->bf_fp_rate.value;
    uint64_t number;

    if (rate > REDIS_RATE_MAX && dialect_is_redis(req->service)) {
        rate = REDIS_RATE_MAX;
    }
    *ret_params = (struct bloom_params){
        .capacity = (uint64_t)conf->bf_capacity,
        .error_rate = rate,
        .tightening = conf->bf_tightening_ratio.value,
        .expansion = (uint32_t)conf->bf_expansion,
    };
    if (conf->bf_use_random_seed) {
        random_bytes(&number, sizeof(number));
        bloom_seed(number, ret_params->seed);
    } else {
        memcpy(ret_params->seed, bloom_seed_fixed, BLOOM_SEED_BYTES);
    }
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
    };

    if (status == BLOOM_NOMEM && req->service->memory.maxmemory_bytes > 0) {
        return ERR_OOM;
    }
    return errors[status];
}

/* A filter was not made, or an item not added. */
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

    observe_change_slow(req, &req->key, CONF_EVENT_GENERIC,
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

static void
describe_creation(struct request *req, const struct bloom *bloom,
                  uint64_t incarnation)
{
    struct bloom_params made;
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
    add_number(req, "STRIPES", made.stripes);
    add_number(req, "LINES", made.lines);
    add_number(req, "INCARNATION", incarnation);
}

uint64_t
bloom_make_incarnation(uint64_t incarnation)
{
    while (incarnation == 0) {
        random_bytes(&incarnation, sizeof(incarnation));
    }
    return incarnation;
}

/* Puts the filter under its name. */
static enum err
settle(struct request *req, struct bloom *bloom, uint64_t incarnation,
       struct bloom **ret_bloom)
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
static void
tighten_first(const struct request *req, struct bloom_params *params)
{
    if (!req->obey && dialect_is_redis(req->service) && params->expansion > 0) {
        params->error_rate *= REDIS_FIRST_TIGHTENING;
    }
}

enum err
bloom_make_create(struct request *req, const struct bloom_params *asked,
                  uint64_t incarnation, size_t items_max,
                  struct bloom **ret_bloom)
{
    const struct bloom_env *env = bloom_make_env(req);
    struct bloom_params params = *asked;
    struct bloom *bloom = NULL;
    enum bloom_status status;
    enum err err;

    if (req->obey && incarnation == 0) {
        return ERR_BF_NOT_FOUND;
    }
    err = request_effect_begin(req, CREATE_WORDS + 1 + items_max);
    if (err != OK) {
        return err;
    }
    incarnation = bloom_make_incarnation(incarnation);
    tighten_first(req, &params);
    status = bloom_new(&params, env, &bloom);
    if (status != BLOOM_OK) {
        return creation_error(req, status);
    }
    err = settle(req, bloom, incarnation, ret_bloom);
    if (err != OK) {
        bloom_free(bloom, env);
        return err;
    }
    describe_creation(req, *ret_bloom, incarnation);
    req->dirty++;
    keys_made(req, &req->key);
    return OK;
}

/* ---- adding many --------------------------------------------------------- */

enum {
    ANSWER_BYTES = 4, /* ":0\r\n" */
    END_BYTES = 320   /* an error, and the header */
};

enum err
bloom_make_check_items(struct request *req, size_t count)
{
    return !req->obey && count > (size_t)req->service->conf->bf_max_items
               ? ERR_BF_ITEMS
               : OK;
}

/* Adds a batch of at most BLOOM_BATCH_MAX items. The caller has reserved the
 * space for the replies. */
static enum bloom_status
add_batch(struct request *req, struct bloom *bloom, const struct slice *items,
          size_t count, size_t *ret_done)
{
    struct bloom_hash hashes[BLOOM_BATCH_MAX];
    bool added[BLOOM_BATCH_MAX];
    enum bloom_status status;

    *ret_done = 0;
    bloom_make_hash(bloom, items, 1, count, hashes);
    status = bloom_add_batch(bloom, bloom_make_env(req), hashes, count, added,
                             ret_done);
    bloom_make_reply_many(req, added, *ret_done);
    return status;
}

/* Adds all items in batches. Returns how many were added: all, unless one
 * failed. */
static size_t
add_all(struct request *req, struct bloom *bloom, const struct bloom_adds *adds,
        enum bloom_status *ret_status)
{
    enum bloom_status status = BLOOM_OK;
    struct bloom_info before;
    struct bloom_info after;
    size_t applied = 0;

    bloom_get_info(bloom, &before);
    while (status == BLOOM_OK && applied < adds->count) {
        size_t left = adds->count - applied;
        size_t done;

        status =
            add_batch(req, bloom, adds->items + applied,
                      left < BLOOM_BATCH_MAX ? left : BLOOM_BATCH_MAX, &done);
        applied += done;
    }
    bloom_get_info(bloom, &after);
    keyspace_account(&before, &after);
    req->dirty += after.items - before.items;
    *ret_status = status;
    return applied;
}

/* Ends an array of replies early with an error as its last element: writes the
 * header again, which does not become longer, and moves the replies behind it.
 */
static void
end_early(struct request *req, size_t header, size_t body, size_t answers,
          enum err err)
{
    struct buf *out = req->reply->buf;
    size_t len = out->len - body;

    out->len = header;
    reply_array(req->reply, answers + 1);
    memmove(out->data + out->len, out->data + body, len);
    out->len += len;
    reply_error(req->reply, err_prefix(err), slice_of(err_text(err)));
    execute_note_error(req, err);
}

/* Completes a rewritten effect with the items that were added. The effect of a
 * creation lists them; an add that stopped halfway, or whose words cannot be
 * replayed, becomes a BF.MADD of them. */
static void
complete_effect(struct request *req, const struct bloom_adds *adds,
                size_t applied)
{
    if (req->effect.kind != EFFECT_REWRITTEN) {
        return;
    }
    if (!adds->created) {
        request_effect_add(req, slice_lit("BF.MADD"));
        request_effect_add(req, req->key.name);
    } else if (applied > 0) {
        request_effect_add(req, slice_lit("ITEMS"));
    }
    for (size_t i = 0; i < applied; i++) {
        request_effect_add(req, adds->items[i]);
    }
}

/* Everything that can fail comes before the first add: space for the reply, and
 * for an effect that lists items. */
enum err
bloom_make_add_items(struct request *req, struct bloom *bloom,
                     const struct bloom_adds *adds)
{
    struct buf *out = req->reply->buf;
    uint64_t dirty = req->dirty;
    enum bloom_status status;
    size_t header = out->len;
    size_t applied;
    size_t body;

    if (buf_reserve(out, adds->count * ANSWER_BYTES + END_BYTES) == NULL ||
        (!adds->created && request_effect_begin(req, adds->count + 2) != OK)) {
        return ERR_NOMEM;
    }
    reply_array(req->reply, adds->count);
    body = out->len;
    applied = add_all(req, bloom, adds, &status);
    if (status != BLOOM_OK) {
        end_early(req, header, body, applied,
                  bloom_make_add_error(req, status));
    } else if (!adds->created && !adds->plain) {
        req->effect.kind = EFFECT_VERBATIM;
    }
    complete_effect(req, adds, applied);
    bloom_make_notify(req, req->dirty > dirty, adds->created);
    return OK;
}
