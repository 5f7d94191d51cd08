/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BF.ADD, BF.EXISTS, BF.MADD, BF.CARD: the hot path. Replies are those of
 * valkey-bloom 1.0.1, integers in RESP2 and RESP3, or of RedisBloom, booleans
 * in RESP3.
 */
#include "access/handlers.h"
#include "bloom/adds.h"
#include "bloom/pairs.h"
#include "engine/effect.h"
#include "engine/keys.h"

enum {
    ITEM_AT = 2,
    WORDS = 3,
    ANSWER_BYTES = 4,
    AHEAD_ITEMS = 64 /* of one command: the handler fetches more by itself */
};

static struct bloom_hash
hash_item(const struct bloom *bloom, struct slice item)
{
    return bloom_hash(bloom, item.data, item.len);
}

/* Updates the gauges for a filter that has grown by its newest layer. */
__attribute__((noinline)) static void
account_growth(const struct bloom *bloom)
{
    struct bloom_layer_info newest = { .struct_size = sizeof(newest) };
    struct bloom_info after = { .struct_size = sizeof(after) };
    struct bloom_info before;

    bloom_get_info(bloom, &after);
    CHECK(bloom_get_layer(bloom, after.layers - 1, &newest));
    before = (struct bloom_info){ .capacity = after.capacity - newest.capacity,
                                  .items = after.items - 1,
                                  .size_bytes = after.size_bytes -
                                                bloom_growth_bytes(bloom),
                                  .layers = after.layers - 1 };
    keyspace_account(&before, &after);
}

/* Reports an add of one item to observers (engine/observe.h). */
__attribute__((noinline)) static void
tell_one(struct request *req, const struct bloom *bloom, struct bloom_hash hash,
         bool added, bool created)
{
    bloom_make_notify(req, added, created);
    if (added) {
        pairs_tell(req, &(struct pairs){ .bloom = bloom,
                                         .hashes = &hash,
                                         .changed = &added,
                                         .count = 1 });
    }
}

/* Adds a hashed item to a filter, and replies. */
static inline enum err
add_one(struct request *req, struct bloom *bloom, struct bloom_hash hash,
        bool created)
{
    uint32_t layers_before = bloom->count;
    bool added = false;
    enum bloom_status status =
        bloom_add(bloom, bloom_make_env(req), hash, &added);

    if (observe_any(req) && (added || observe_is_on(req))) {
        tell_one(req, bloom, hash, added, created);
    }
    if (status != BLOOM_OK) {
        return bloom_make_add_error(req, status);
    }
    if (added && bloom->count == layers_before) {
        metric_add(METRIC_BF_ITEMS, bloom_items(bloom) <= KEYSPACE_COUNTED_MAX);
    } else if (added) {
        account_growth(bloom);
    }
    req->dirty += added ? 1 : 0;
    bloom_make_reply(req, added);
    return OK;
}

static enum err
create_and_add(struct request *req)
{
    struct slice item = req->argv[ITEM_AT];
    struct bloom_insert insert = { .items = &item, .count = 1 };
    struct bloom *bloom = NULL;
    enum err err;

    bloom_make_defaults(req, &insert.params);
    err = bloom_make_create(req, &insert, &bloom);
    if (err != OK) {
        return err;
    }
    request_effect_add(req, slice_lit("ITEMS"));
    request_effect_add(req, item);
    return add_one(req, bloom, hash_item(bloom, item), true);
}

enum err
cmd_bf_add(struct request *req)
{
    struct bloom *bloom = bloom_make_open(req);

    if (bloom == NULL) {
        return create_and_add(req);
    }
    if (bloom_make_is_special(bloom) || req->service->log_has_gaps) {
        return bloom_is_incomplete(bloom)
                   ? ERR_BF_INCOMPLETE
                   : adds_run_one(req, bloom, req->argv[ITEM_AT]);
    }
    return add_one(req, bloom, hash_item(bloom, req->argv[ITEM_AT]), false);
}

enum err
cmd_bf_exists(struct request *req)
{
    const struct bloom *bloom = bloom_make_find(req);
    enum err err = bloom_make_check_found(req, bloom);
    bool found;

    if (err != OK) {
        return err;
    }
    found = bloom != NULL &&
            bloom_make_has(req, bloom, hash_item(bloom, req->argv[ITEM_AT]));
    bloom_make_count(1, found);
    bloom_make_reply(req, found);
    return OK;
}

void
cmd_bf_ahead(const struct entry *entry, const struct slice *argv, size_t argc)
{
    for (size_t i = ITEM_AT; i < argc && i - ITEM_AT < AHEAD_ITEMS; i++) {
        bloom_fetch(&entry->bloom, hash_item(&entry->bloom, argv[i]));
    }
}

/* ---- many requests for one filter ---------------------------------------- */

/* Reserves space for the replies. Without it, the handler executes the requests
 * that still fit, one by one. */
static bool
reserve_replies(struct request *req, uint32_t count)
{
    struct buf *out = req->reply->buf;

    if (buf_reserve(out, (size_t)count * ANSWER_BYTES) == NULL) {
        out->failed = false;
        out->over = false;
        return false;
    }
    return true;
}

/* Returns how many of the requests may be answered at once. */
static inline uint32_t
together(const struct bloom *bloom, uint32_t count)
{
    size_t most = BLOOM_BATCH_MAX;

    if (count > 1 && bloom != NULL) {
        most = bloom_together(bloom);
    }
    return count < most ? count : (uint32_t)most;
}

/* If the eviction policy counts uses, counts those of all requests except the
 * first, which the lookup has counted. */
static void
use_again(struct request *req, uint32_t count)
{
    struct entry *entry;

    if (__builtin_expect(access_counts(keyspace_access(req->keyspace)), 0)) {
        entry = keyspace_find(req->keyspace, &req->key, req->now_ms);
        for (uint32_t i = 1; i < count && entry != NULL; i++) {
            keys_use(req, entry);
        }
    }
}

/* Reports adds of many items to observers. */
__attribute__((noinline)) static void
tell_many(struct request *req, const struct pairs *pairs)
{
    for (size_t i = 0; i < pairs->count && observe_is_on(req); i++) {
        bloom_make_notify_slow(req, pairs->changed[i], false);
    }
    pairs_tell(req, pairs);
}

/* Adds the effect of each request that has added its item. */
static void
pass_on(struct request *req, const struct slice *argv, const bool *added,
        uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (added[i]) {
            req->argv = argv + (size_t)i * WORDS;
            req->dirty = 1;
            effect_add(req);
        }
    }
}

/* Has outlines (core/bloom.h) of the filters of this loop's last runs, by the
 * hash of their key (keys may share a place), and the hashes of the next run's
 * items, made with such an outline. If several loops add to the same filter,
 * only one of them can have its lock. So items are hashed, and their lines
 * fetched, before the lock is taken. */
static _Thread_local struct {
    struct bloom outline[WORKER_PLACES]; /* .count of 0: none */
    const struct bloom *used;
    uint32_t count;
    struct bloom_hash hashes[BLOOM_BATCH_MAX];
} ready;

void
cmd_bf_add_ready(struct request *req, const struct slice *argv, uint32_t count)
{
    struct bloom *outline = &ready.outline[req->key.hash % WORKER_PLACES];

    if (outline->count > 0 && count <= BLOOM_BATCH_MAX) {
        bloom_make_hash(outline, argv + ITEM_AT, WORDS, count, ready.hashes);
        ready.used = outline;
        ready.count = count;
    }
}

/* Returns the hashes of the items: the prepared ones if they belong to this
 * filter, else new ones. Remembers the filter for its next run, unless it gets
 * only one command at a time, for which nothing is prepared. */
static const struct bloom_hash *
hashes_of(const struct request *req, const struct bloom *bloom,
          const struct slice *argv, uint32_t count,
          struct bloom_hash *ret_hashes)
{
    struct bloom *outline = &ready.outline[req->key.hash % WORKER_PLACES];
    bool is_ready = ready.count >= count && ready.used == outline &&
                    bloom_hashes_alike(outline, bloom);

    ready.count = 0;
    if (!is_ready) {
        bloom_make_hash(bloom, argv + ITEM_AT, WORDS, count, ret_hashes);
    }
    if (count > 1 && keyspace_is_shared(req->keyspace) &&
        !bloom_outline(bloom, outline)) {
        outline->count = 0;
    }
    return is_ready ? ready.hashes : ret_hashes;
}

uint32_t
cmd_bf_add_many(struct request *req, const struct slice *argv, uint32_t count)
{
    struct bloom *bloom = bloom_make_open(req);
    struct bloom_hash own[BLOOM_BATCH_MAX];
    const struct bloom_hash *hashes;
    bool added[BLOOM_BATCH_MAX];
    struct bloom_info before = { .struct_size = sizeof(before) };
    struct bloom_info after = { .struct_size = sizeof(after) };
    size_t done = 0;

    if (bloom == NULL || bloom_make_is_special(bloom) ||
        !reserve_replies(req, count)) {
        ready.count = 0;
        return 0;
    }
    count = together(bloom, count);
    bloom_get_info(bloom, &before);
    hashes = hashes_of(req, bloom, argv, count, own);
    bloom_touch(bloom, hashes, count);
    /* The handler meets the error that stops the batch again, and replies. */
    (void)bloom_add_batch(bloom, bloom_make_env(req), hashes, count, added,
                          &done);
    bloom_get_info(bloom, &after);
    bloom_make_reply_many(req, added, done);
    if (before.items != after.items) {
        keyspace_account(&before, &after);
    }
    use_again(req, (uint32_t)done);
    if (observe_any(req)) {
        tell_many(req, &(struct pairs){ .bloom = bloom,
                                        .hashes = hashes,
                                        .changed = added,
                                        .count = done });
    }
    if (req->service->journal != NULL) {
        pass_on(req, argv, added, (uint32_t)done);
    } else {
        metric_add(METRIC_CHANGES, (int64_t)(after.items - before.items));
    }
    req->dirty = after.items - before.items;
    return (uint32_t)done;
}

/* If the key is watched, or notices are wanted, it must be opened for writing,
 * even if nothing changes: cmd_bf_add_many does that. Subscribers of a filter
 * need no notice if nothing changes. */
uint32_t
cmd_bf_add_known(struct request *req, const struct slice *argv, uint32_t count)
{
    static const bool none[BLOOM_BATCH_MAX];
    struct entry *entry = keyspace_find(req->keyspace, &req->key, req->now_ms);
    struct bloom_hash hashes[BLOOM_BATCH_MAX];
    bool found[BLOOM_BATCH_MAX];

    if (entry == NULL || bloom_make_is_special(&entry->bloom) ||
        keyspace_is_watched(entry) || observe_is_on(req) ||
        !reserve_replies(req, count)) {
        return 0;
    }
    count = together(&entry->bloom, count);
    bloom_make_hash(&entry->bloom, argv + ITEM_AT, WORDS, count, hashes);
    bloom_contains_batch(&entry->bloom, hashes, count, found);
    if (memchr(found, false, count) != NULL) {
        return 0;
    }
    keys_use(req, entry);
    use_again(req, count);
    bloom_make_reply_many(req, none, count);
    return count;
}

uint32_t
cmd_bf_exists_many(struct request *req, const struct slice *argv,
                   uint32_t count)
{
    const struct bloom *bloom;
    struct bloom_hash hashes[BLOOM_BATCH_MAX];
    bool found[BLOOM_BATCH_MAX];

    if (!reserve_replies(req, count) ||
        (bloom_make_must_exist(req) &&
         keyspace_find(req->keyspace, &req->key, req->now_ms) == NULL)) {
        return 0; /* the handler counts the miss and returns the error */
    }
    bloom = bloom_make_find(req);
    if (bloom_make_is_unready(bloom)) {
        return 0;
    }
    count = together(bloom, count);
    if (bloom != NULL) {
        bloom_make_hash(bloom, argv + ITEM_AT, WORDS, count, hashes);
        bloom_make_ask(req, bloom, hashes, count, found);
        metric_add(METRIC_KEYSPACE_HITS, count - 1);
        use_again(req, count);
    } else {
        memset(found, false, count);
        metric_add(METRIC_KEYSPACE_MISSES, count - 1);
        for (uint32_t i = 1; i < count; i++) {
            observe_event(req, &req->key, CONF_EVENT_KEY_MISS, "keymiss");
        }
    }
    bloom_make_count_many(found, count);
    bloom_make_reply_many(req, found, count);
    return count;
}

/* ---- many items in one request ------------------------------------------- */

enum err
cmd_bf_madd(struct request *req)
{
    struct bloom_adds adds = { .items = req->argv + ITEM_AT,
                               .count = req->argc - ITEM_AT };
    enum err err = bloom_make_check_items(req, adds.count);
    struct bloom_insert insert = { .items = adds.items, .count = adds.count };
    struct bloom *bloom;

    if (err == OK) {
        bloom_make_defaults(req, &insert.params);
        err = adds_touch(req, &insert);
    }
    if (err != OK) {
        return err;
    }
    bloom = bloom_make_open(req);
    adds.created = bloom == NULL;
    if (adds.created) {
        err = bloom_make_create(req, &insert, &bloom);
    }
    if (err == OK && bloom_make_is_unready(bloom)) {
        err = ERR_BF_INCOMPLETE;
    }
    return err == OK ? adds_run(req, bloom, &adds) : err;
}

enum err
cmd_bf_card(struct request *req)
{
    const struct bloom *bloom = bloom_make_find(req);

    if (bloom == NULL && bloom_make_must_exist(req)) {
        return ERR_BF_NOT_FOUND;
    }
    reply_int(req->reply,
              bloom != NULL ? (int64_t)ageing_items(bloom, req->now_ms) : 0);
    return OK;
}
