/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BF.DEL and BF.MDEL, which no module has. The answer to an item is an integer
 * in every protocol and dialect:
 *
 *    1  it is gone
 *    0  it was not there
 *   -1  it seems to be there still: other items share its bits, or several
 *       layers seem to have it
 */
#include "access/handlers.h"
#include "base/mem.h"
#include "bloom/adds.h"
#include "keyspace/redo.h"

enum { ITEM_AT = 2, ANSWER_BYTES = 8 };

static void
notify(struct request *req, uint64_t gone)
{
    if (gone > 0) {
        observe_change(req, &req->key, FEED_NOTHING, CONF_EVENT_GENERIC,
                       "bloom.del");
        observe_feed(
            req, &req->key,
            &(struct feed_change){ .kind = FEED_DELETED, .number = gone });
    }
}

/* Deletes an item, lists it in the effect if it is gone, and replies. */
static bool
delete_one(struct request *req, struct bloom *bloom, struct slice item)
{
    struct bloom_hash hash = bloom_hash(bloom, item.data, item.len);
    struct deletable_done done;
    int answer = deletable_delete(bloom, hash, &done);
    char place[REDO_PLACE_MAX];

    reply_int(req->reply, answer);
    if (answer == 1) {
        struct slice text = { place, redo_put_deletion(done, place) };

        request_effect_add(req, request_arena_copy(req, text));
        request_effect_add(req, item);
    }
    return answer == 1;
}

static enum err
delete_items(struct request *req, struct bloom *bloom)
{
    struct bloom_info before = { .struct_size = sizeof(before) };
    struct bloom_info after = { .struct_size = sizeof(after) };
    size_t count = req->argc - ITEM_AT;
    uint64_t gone = 0;

    if (buf_reserve(req->reply->buf, count * ANSWER_BYTES) == NULL ||
        request_effect_begin(req, BLOOM_PLACED_WORDS(count)) != OK) {
        return ERR_NOMEM;
    }
    request_effect_add(req, slice_lit("BF.MDEL"));
    request_effect_add(req, req->key.name);
    request_effect_add(req, slice_lit("PLACED"));
    bloom_get_info(bloom, &before);
    for (size_t i = 0; i < count; i++) {
        gone += delete_one(req, bloom, req->argv[ITEM_AT + i]);
    }
    bloom_get_info(bloom, &after);
    keyspace_account(&before, &after);
    req->dirty += gone;
    notify(req, gone);
    return OK;
}

/* Checks whether items can be deleted. bloom: NULL if the key is missing. */
static enum err
check_deletable(const struct request *req, const struct bloom *bloom)
{
    enum err err = bloom_make_check_found(req, bloom);

    return err == OK && bloom != NULL && bloom_kind(bloom) != BLOOM_DELETABLE
               ? ERR_BF_NOT_DELETABLE
               : err;
}

enum err
cmd_bf_del(struct request *req)
{
    struct bloom *bloom = bloom_make_open(req);
    enum err err = check_deletable(req, bloom);

    if (err == OK && bloom == NULL) {
        reply_int(req->reply, 0);
        return OK;
    }
    return err == OK ? delete_items(req, bloom) : err;
}

enum err
cmd_bf_mdel(struct request *req)
{
    size_t count = req->argc - ITEM_AT;
    struct bloom *bloom;
    enum err err = bloom_make_check_items(req, count);

    if (err != OK) {
        return err;
    }
    bloom = bloom_make_open(req);
    if (req->obey) {
        if (!slice_is_word(req->argv[ITEM_AT], "placed")) {
            return ERR_SYNTAX;
        }
        err = adds_redo(req, bloom, req->argv + ITEM_AT + 1, count - 1, true);
        notify(req, err == OK ? req->dirty : 0);
        return err;
    }
    err = check_deletable(req, bloom);
    if (err != OK) {
        return err;
    }
    reply_array(req->reply, count);
    if (bloom != NULL) {
        return delete_items(req, bloom);
    }
    for (size_t i = 0; i < count; i++) {
        reply_int(req->reply, 0);
    }
    return OK;
}
