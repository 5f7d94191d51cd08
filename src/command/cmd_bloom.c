/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BF.ADD, BF.EXISTS, BF.MADD, BF.MEXISTS, BF.CARD: the hot ones. Replies are
 * those of valkey-bloom 1.0.1, integers in RESP2 and RESP3, or of RedisBloom,
 * which has booleans in RESP3.
 */
#include "base/metrics.h"
#include "command/bloom_make.h"

enum { ITEM_AT = 2, REPLY_BYTES = 4 /* ":0\r\n" */ };

static struct bloom_hash
hash_item(const struct bloom *bloom, struct slice item)
{
    return bloom_hash(bloom, item.data, item.len);
}

/* Under a policy that counts uses, each one does. */
__attribute__((noinline)) static void
use_again(struct request *req)
{
    struct entry *entry = keyspace_find(req->keyspace, &req->key, req->now_ms);

    if (entry != NULL) {
        request_use(req, entry);
    }
}

/* What looking the same name up again would have counted and told. */
static void
count_again(struct request *req)
{
    if (access_counts(req->keyspace)) {
        use_again(req);
    }
    if ((req->command->flags & CMD_READONLY) == 0) {
        return;
    }
    if (req->bloom != NULL) {
        metric_add(METRIC_KEYSPACE_HITS, 1);
    } else {
        metric_add(METRIC_KEYSPACE_MISSES, 1);
        observe_event(req, &req->key, CONF_EVENT_KEY_MISS, "keymiss");
    }
}

/* One-item commands of a run: finds the filter (once for equal keys in a row)
 * and starts fetching the item's lines. */
void
cmd_bf_prepare(struct request *req)
{
    req->prepared = true;
    if (req->previous != NULL) {
        req->bloom = req->previous->bloom;
        count_again(req);
    } else if ((req->command->flags & CMD_READONLY) != 0) {
        req->bloom = bloom_make_find(req);
    } else {
        req->bloom = bloom_make_open(req);
    }
    if (req->bloom != NULL) {
        req->hash = hash_item(req->bloom, req->argv[ITEM_AT]);
        bloom_prefetch(req->bloom, req->hash);
    }
}

/* The filter grew by its newest layer: brings the gauges up to date. */
__attribute__((noinline)) static void
account_growth(const struct bloom *bloom, uint64_t size_before)
{
    struct bloom_layer_info newest;
    struct bloom_info after;
    struct bloom_info before;

    bloom_get_info(bloom, &after);
    CHECK(bloom_get_layer(bloom, after.layers - 1, &newest));
    before = (struct bloom_info){ .capacity = after.capacity - newest.capacity,
                                  .items = after.items - 1,
                                  .size = size_before,
                                  .layers = after.layers - 1 };
    keyspace_account(&before, &after);
}

/* The filter is there and the item hashed. */
static inline enum err
add_one(struct request *req, struct bloom *bloom, struct bloom_hash hash,
        bool created)
{
    uint64_t size_before = bloom_size(bloom);
    bool added = false;
    enum bloom_status status =
        bloom_add(bloom, bloom_make_env(req), hash, &added);

    bloom_make_tell(req, added, created);
    if (status != BLOOM_OK) {
        return bloom_make_add_error(req, status);
    }
    if (added && bloom_size(bloom) == size_before) {
        metric_add(METRIC_BF_ITEMS, 1);
    } else if (added) {
        account_growth(bloom, size_before);
    }
    req->dirty += added ? 1 : 0;
    bloom_make_reply(req, added);
    return OK;
}

static enum err
create_and_add(struct request *req)
{
    struct slice item = req->argv[ITEM_AT];
    struct bloom_params params;
    struct bloom *bloom = NULL;
    enum err err;

    bloom_make_defaults(req, &params);
    err = bloom_make_create(req, &params, 0, 1, &bloom);
    if (err != OK) {
        return err;
    }
    request_effect_add(req, slice_lit("ITEMS"));
    request_effect_add(req, item);
    return add_one(req, bloom, hash_item(bloom, item), true);
}

/* Apart, so that an add to a filter that is at hand needs no stack frame. */
__attribute__((noinline)) static enum err
open_and_add(struct request *req)
{
    struct bloom *bloom = bloom_make_open(req);

    if (bloom == NULL) {
        return create_and_add(req);
    }
    return add_one(req, bloom, hash_item(bloom, req->argv[ITEM_AT]), false);
}

enum err
cmd_bf_add(struct request *req)
{
    if (req->bloom == NULL) {
        return open_and_add(req);
    }
    return add_one(req, req->bloom, req->hash, false);
}

/* What cmd_bf_prepare does for who is in a run; in EXEC, say, nobody is. */
__attribute__((noinline)) static const struct bloom *
find_and_hash(struct request *req)
{
    const struct bloom *bloom = bloom_make_find(req);

    if (bloom != NULL) {
        req->hash = hash_item(bloom, req->argv[ITEM_AT]);
    }
    return bloom;
}

enum err
cmd_bf_exists(struct request *req)
{
    const struct bloom *bloom = req->prepared ? req->bloom : find_and_hash(req);

    bloom_make_reply(req, bloom != NULL && bloom_contains(bloom, req->hash));
    return OK;
}

enum err
cmd_bf_madd(struct request *req)
{
    struct bloom *bloom = bloom_make_open(req);
    struct bloom_adds adds = { .items = req->argv + ITEM_AT,
                               .count = req->argc - ITEM_AT,
                               .created = bloom == NULL };
    struct bloom_params params;
    enum err err = OK;

    if (adds.created) {
        bloom_make_defaults(req, &params);
        err = bloom_make_create(req, &params, 0, adds.count, &bloom);
    }
    if (err == OK) {
        err = bloom_make_add_items(req, bloom, &adds);
    }
    return err;
}

static void
answer_batch(struct request *req, const struct bloom *bloom,
             const struct slice *items, size_t count)
{
    struct bloom_item batch[BLOOM_BATCH_MAX];
    struct bloom_hash hashes[BLOOM_BATCH_MAX];
    bool found[BLOOM_BATCH_MAX];

    for (size_t i = 0; i < count; i++) {
        batch[i] = (struct bloom_item){ items[i].data, items[i].len };
    }
    bloom_hash_batch(bloom, batch, count, hashes);
    bloom_contains_batch(bloom, hashes, count, found);
    bloom_make_reply_many(req, found, count);
}

enum err
cmd_bf_mexists(struct request *req)
{
    struct bloom *bloom = bloom_make_find(req);
    size_t count = req->argc - ITEM_AT;

    reply_array(req->reply, count);
    if (buf_reserve(req->reply->buf, count * REPLY_BYTES) == NULL) {
        return ERR_NOMEM;
    }
    for (size_t at = 0; at < count; at += BLOOM_BATCH_MAX) {
        size_t left = count - at;
        size_t n = left < BLOOM_BATCH_MAX ? left : BLOOM_BATCH_MAX;

        if (bloom != NULL) {
            answer_batch(req, bloom, req->argv + ITEM_AT + at, n);
        } else {
            static const bool none[BLOOM_BATCH_MAX];

            bloom_make_reply_many(req, none, n);
        }
    }
    return OK;
}

enum err
cmd_bf_card(struct request *req)
{
    struct bloom *bloom = bloom_make_find(req);

    reply_int(req->reply, bloom != NULL ? (int64_t)bloom_items(bloom) : 0);
    return OK;
}
