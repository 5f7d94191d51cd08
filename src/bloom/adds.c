/* SPDX-License-Identifier: BSD-3-Clause */
#include "bloom/adds.h"

#include "access/handlers.h"
#include "base/mem.h"
#include "bloom/pairs.h"
#include "engine/execute.h"
#include "engine/keys.h"
#include "keyspace/redo.h"

enum {
    ANSWER_BYTES = 4, /* ":0\r\n" */
    END_BYTES = 320,  /* an error, and the header */
    WORDS_EACH = 2    /* a place and an item */
};

/* ---- pages --------------------------------------------------------------- */

/* Hashes a batch of at most BLOOM_BATCH_MAX items, for adds. */
static void
hash_batch(const struct bloom *bloom, const struct slice *items, size_t count,
           struct bloom_hash *ret_hashes)
{
    bloom_make_hash(bloom, items, 1, count, ret_hashes);
    bloom_touch(bloom, ret_hashes, count);
}

/* How far adds_touch() is between two pieces. */
struct touching {
    size_t at;          /* the next item */
    struct bloom *made; /* for a key that was missing; else NULL */
    struct bloom_env env;
};

static void
touching_free(void *state)
{
    struct touching *touching = state;

    if (touching->made != NULL) {
        bloom_free(touching->made, &touching->env);
    }
    mem_free(touching);
}

/* Returns whether the filter can be made before the last piece: an ageing
 * filter cannot, since it begins at the time of that piece. */
static bool
may_make(const struct bloom_insert *insert)
{
    return !insert->no_create && insert->same == 0 &&
           insert->params.kind != BLOOM_AGEING;
}

/* Makes the state; NULL without memory. The request frees it when it ends. */
static struct touching *
touching_new(struct request *req, const struct bloom_insert *insert,
             bool is_missing)
{
    struct touching *touching = mem_try_zalloc(sizeof(*touching));

    if (touching != NULL) {
        touching->env = *bloom_make_env(req);
        if (is_missing) {
            touching->made = bloom_make_ahead(req, insert);
        }
        request_pause(req, touching, touching_free);
    }
    return touching;
}

/* Does one piece of adds_touch(). */
static enum err
touch_some(const struct request *req, const struct bloom *bloom,
           const struct bloom_insert *insert, size_t *at)
{
    struct bloom_hash hashes[BLOOM_BATCH_MAX];

    while (*at < insert->count) {
        size_t left = insert->count - *at;
        size_t some = left < BLOOM_BATCH_MAX ? left : BLOOM_BATCH_MAX;

        hash_batch(bloom, insert->items + *at, some, hashes);
        *at += some;
        if (*at < insert->count && request_is_late(req)) {
            return ERR_AGAIN;
        }
    }
    return OK;
}

/* The filter may be changed, made or removed between two pieces. That makes the
 * rest slower or needless, but never wrong. */
enum err
adds_touch(struct request *req, struct bloom_insert *insert)
{
    enum { FEW = 4 * BLOOM_BATCH_MAX }; /* items that are always one piece */
    struct touching *touching = request_resumed(req);
    const struct entry *entry;
    const struct bloom *bloom;

    if (insert->count <= FEW || req->obey || !request_may_pause(req)) {
        return OK;
    }
    entry = keyspace_find(req->keyspace, &req->key, req->now_ms);
    bloom = entry != NULL ? &entry->bloom : NULL;
    if (bloom != NULL &&
        (bloom_make_is_unready(bloom) || !bloom_is_fresh(bloom))) {
        return OK;
    }
    if (bloom == NULL && touching == NULL && !may_make(insert)) {
        return OK;
    }
    if (touching == NULL) {
        touching = touching_new(req, insert, bloom == NULL);
    }
    if (touching != NULL && bloom == NULL) {
        insert->made = &touching->made;
        bloom = touching->made;
    }
    return touching == NULL || bloom == NULL
               ? OK
               : touch_some(req, bloom, insert, &touching->at);
}

/* Other words of a BF.INSERT among the items only touch a few more pages. */
bool
cmd_bf_touch(const struct entry *entry, const struct slice *items, size_t count)
{
    const struct bloom *bloom = &entry->bloom;
    struct bloom_hash hashes[BLOOM_BATCH_MAX];

    if (bloom_make_is_unready(bloom) || !bloom_is_fresh(bloom)) {
        return false;
    }
    for (size_t at = 0; at < count; at += BLOOM_BATCH_MAX) {
        size_t left = count - at;

        hash_batch(bloom, items + at,
                   left < BLOOM_BATCH_MAX ? left : BLOOM_BATCH_MAX, hashes);
    }
    return true;
}

/* ---- effects of new items ------------------------------------------------ */

/* Begins the list of the effect with the first items, all of which were new.
 * ANY: there are items to list. The words of a creation are there already. */
static void
begin_list(struct request *req, const struct bloom_adds *adds, size_t first,
           bool any)
{
    if (req->effect.kind != EFFECT_REWRITTEN) {
        return;
    }
    if (!adds->created) {
        request_effect_add(req, slice_lit("BF.MADD"));
        request_effect_add(req, req->key.name);
    } else if (any) {
        request_effect_add(req, slice_lit("ITEMS"));
    }
    for (size_t i = 0; i < first; i++) {
        request_effect_add(req, adds->items[i]);
    }
}

/* Adds the new ones of `count` items to the list in the effect; `before` items
 * were handled before these. The list begins (*listing) with the first item
 * that is not new. */
static void
list_added(struct request *req, const struct bloom_adds *adds, size_t before,
           const bool *added, size_t count, bool *listing)
{
    if (req->effect.kind != EFFECT_REWRITTEN ||
        (!*listing && memchr(added, false, count) == NULL)) {
        return;
    }
    if (!*listing) {
        begin_list(req, adds, before, true); /* of a creation, the 1st is new */
        *listing = true;
    }
    for (size_t i = 0; i < count; i++) {
        if (added[i]) {
            request_effect_add(req, adds->items[before + i]);
        }
    }
}

/* Returns whether to add an item although the filter cannot grow. A log with
 * gaps may lack a command that emptied the filter: there was room when this
 * item was added. */
static bool
goes_over(const struct request *req, enum bloom_status status)
{
    return req->service->log_has_gaps && status != BLOOM_OK &&
           status != BLOOM_NOMEM;
}

/* Adds a batch of at most BLOOM_BATCH_MAX items. The caller has reserved the
 * space for the replies. */
static enum bloom_status
add_batch(struct request *req, struct bloom *bloom, const struct slice *items,
          size_t count, bool *ret_added, size_t *ret_done)
{
    struct bloom_hash hashes[BLOOM_BATCH_MAX];
    enum bloom_status status;

    *ret_done = 0;
    hash_batch(bloom, items, count, hashes);
    status = bloom_add_batch(bloom, bloom_make_env(req), hashes, count,
                             ret_added, ret_done);
    while (goes_over(req, status)) {
        size_t more = 0;

        bloom_add_over(bloom, hashes[*ret_done]);
        ret_added[(*ret_done)++] = true;
        status =
            bloom_add_batch(bloom, bloom_make_env(req), hashes + *ret_done,
                            count - *ret_done, ret_added + *ret_done, &more);
        *ret_done += more;
    }
    bloom_make_reply_many(req, ret_added, *ret_done);
    pairs_tell(req, &(struct pairs){ .bloom = bloom,
                                     .hashes = hashes,
                                     .changed = ret_added,
                                     .count = *ret_done });
    return status;
}

/* Adds all items in batches, and completes the effect: it lists exactly the
 * items that were new, in order. If all were new, the effect is the command
 * itself, unless its words cannot be replayed. */
static enum bloom_status
add_all(struct request *req, struct bloom *bloom, const struct bloom_adds *adds,
        size_t *ret_applied)
{
    enum bloom_status status = BLOOM_OK;
    bool added[BLOOM_BATCH_MAX];
    bool listing = false;
    size_t applied = 0;

    while (status == BLOOM_OK && applied < adds->count) {
        size_t left = adds->count - applied;
        size_t done;

        status = add_batch(req, bloom, adds->items + applied,
                           left < BLOOM_BATCH_MAX ? left : BLOOM_BATCH_MAX,
                           added, &done);
        list_added(req, adds, applied, added, done, &listing);
        applied += done;
    }
    if (!listing && status == BLOOM_OK && !adds->created && !adds->plain) {
        req->effect.kind = EFFECT_VERBATIM;
    } else if (!listing) {
        begin_list(req, adds, applied, applied > 0);
    }
    *ret_applied = applied;
    return status;
}

/* ---- deletable filters --------------------------------------------------- */

/* Adds one item that is hashed. *ret_layer is the layer that seemed to have it,
 * or DELETABLE_NEW. */
static enum bloom_status
add_one(struct request *req, struct bloom *bloom, struct bloom_hash hash,
        uint16_t *ret_layer)
{
    enum bloom_status status;

    *ret_layer = deletable_layer_of(bloom, hash);
    status =
        deletable_add_again(bloom, bloom_make_env(req), hash,
                            (struct deletable_done){ .layer = *ret_layer }, 0);
    if (goes_over(req, status)) {
        bloom_add_over(bloom, hash);
        status = BLOOM_OK;
    }
    return status;
}

/* Adds an item to the effect. Before the first item, adds the word that begins
 * the list. */
static void
list_item(struct request *req, bool first, uint16_t layer, struct slice item)
{
    char place[REDO_PLACE_MAX];

    if (first) {
        request_effect_add(req, slice_lit("PLACED"));
    }
    if (layer == DELETABLE_NEW) {
        request_effect_add(req, slice_lit("+"));
    } else {
        struct slice text = { place, redo_put_add(layer, place) };

        request_effect_add(req, request_arena_copy(req, text));
    }
    request_effect_add(req, item);
}

/* Adds the items in order, replies, and completes the effect. *ret_applied is
 * the number of items before a failed one. */
static enum bloom_status
add_placed(struct request *req, struct bloom *bloom,
           const struct bloom_adds *adds, size_t *ret_applied)
{
    struct bloom_hash hashes[BLOOM_BATCH_MAX];
    bool added[BLOOM_BATCH_MAX];
    enum bloom_status status = BLOOM_OK;
    size_t applied = 0;

    if (!adds->created) {
        request_effect_add(req, slice_lit("BF.INSERT"));
        request_effect_add(req, req->key.name);
    }
    while (status == BLOOM_OK && applied < adds->count) {
        const struct slice *items = adds->items + applied;
        size_t left = adds->count - applied;
        size_t count = left < BLOOM_BATCH_MAX ? left : BLOOM_BATCH_MAX;
        size_t done = 0;

        hash_batch(bloom, items, count, hashes);
        while (done < count && status == BLOOM_OK) {
            uint16_t layer;

            status = add_one(req, bloom, hashes[done], &layer);
            if (status == BLOOM_OK) {
                list_item(req, applied + done == 0, layer, items[done]);
                added[done++] = layer == DELETABLE_NEW;
            }
        }
        bloom_make_reply_many(req, added, done);
        pairs_tell(req, &(struct pairs){ .bloom = bloom,
                                         .hashes = hashes,
                                         .changed = added,
                                         .count = done });
        applied += done;
    }
    *ret_applied = applied;
    return status;
}

/* ---- ageing filters ------------------------------------------------------ */

struct slices {
    const struct slice *at;
    size_t count;
};

/* Adds one item that is hashed. *ret_changed: the newest generation did not
 * have it. */
static enum bloom_status
add_aged(struct request *req, struct bloom *bloom, struct bloom_hash hash,
         uint64_t now_ms, bool *ret_added, bool *ret_changed)
{
    uint64_t turn = ageing_turn(bloom);
    uint64_t items = bloom_items(bloom);
    enum bloom_status status =
        bloom_add_at(bloom, bloom_make_env(req), hash, now_ms, ret_added);

    if (goes_over(req, status)) {
        bloom_add_over(bloom, hash);
        *ret_added = true;
        status = BLOOM_OK;
    }
    *ret_changed = ageing_turn(bloom) != turn || bloom_items(bloom) != items;
    return status;
}

/* Adds items, at most BLOOM_BATCH_MAX, and lists those that change something.
 * *changed counts these. *ret_done is the number of items before a failed one.
 */
static enum bloom_status
renew_batch(struct request *req, struct bloom *bloom, struct slices items,
            uint64_t now_ms, size_t *changed, size_t *ret_done)
{
    struct bloom_hash hashes[BLOOM_BATCH_MAX];
    bool added[BLOOM_BATCH_MAX];
    bool changes[BLOOM_BATCH_MAX];
    enum bloom_status status = BLOOM_OK;
    size_t done = 0;

    hash_batch(bloom, items.at, items.count, hashes);
    while (done < items.count && status == BLOOM_OK) {
        bool change = false;

        status =
            add_aged(req, bloom, hashes[done], now_ms, &added[done], &change);
        changes[done] = change;
        if (status == BLOOM_OK && change) {
            if ((*changed)++ == 0) {
                request_effect_add(req, slice_lit("ITEMS"));
            }
            request_effect_add(req, items.at[done]);
        }
        done += status == BLOOM_OK;
    }
    bloom_make_reply_many(req, added, done);
    pairs_tell(req, &(struct pairs){ .bloom = bloom,
                                     .hashes = hashes,
                                     .changed = changes,
                                     .count = done,
                                     .at_ms = now_ms });
    *ret_done = done;
    return status;
}

/* Does what add_placed() does. *ret_changed is the number of items that changed
 * something; the effect lists these. */
static enum bloom_status
add_renewed(struct request *req, struct bloom *bloom,
            const struct bloom_adds *adds, size_t *ret_applied,
            size_t *ret_changed)
{
    uint64_t now_ms = req->obey ? adds->at_ms : req->now_ms;
    uint64_t turn = ageing_turn(bloom);
    enum bloom_status status = BLOOM_OK;
    size_t applied = 0;
    size_t done;

    *ret_changed = 0;
    if (!adds->created) {
        request_effect_add(req, slice_lit("BF.INSERT"));
        request_effect_add(req, req->key.name);
        request_effect_add(req, slice_lit("AT"));
        request_effect_add_number(req, now_ms);
    }
    while (status == BLOOM_OK && applied < adds->count) {
        size_t left = adds->count - applied;
        struct slices items = { adds->items + applied, left < BLOOM_BATCH_MAX
                                                           ? left
                                                           : BLOOM_BATCH_MAX };

        status = renew_batch(req, bloom, items, now_ms, ret_changed, &done);
        applied += done;
    }
    if (ageing_turn(bloom) != turn) {
        keys_walk_again(req, &req->key); /* layers have moved */
    }
    *ret_applied = applied;
    return status;
}

/* ---- all of it ----------------------------------------------------------- */

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

/* Adds all items to a filter of any kind, replies, and completes the effect.
 * *ret_applied is the number of items before a failed one. Sets dirty. */
static enum bloom_status
add_any(struct request *req, struct bloom *bloom, const struct bloom_adds *adds,
        size_t *ret_applied)
{
    struct bloom_info before = { .struct_size = sizeof(before) };
    struct bloom_info after = { .struct_size = sizeof(after) };
    enum bloom_status status;
    size_t changed = 0;

    bloom_get_info(bloom, &before);
    switch (bloom_kind(bloom)) {
    case BLOOM_DELETABLE:
        status = add_placed(req, bloom, adds, ret_applied);
        changed = *ret_applied;
        break;
    case BLOOM_AGEING:
        status = add_renewed(req, bloom, adds, ret_applied, &changed);
        break;
    default:
        status = add_all(req, bloom, adds, ret_applied);
    }
    bloom_get_info(bloom, &after);
    keyspace_account(&before, &after);
    if (before.kind < BLOOM_DELETABLE) {
        changed = after.items - before.items;
    }
    req->dirty += changed;
    bloom_make_notify(req,
                      after.items > before.items ||
                          (before.kind == BLOOM_AGEING && changed > 0),
                      adds->created);
    return status;
}

/* Everything that can fail comes before the first add: space for the reply, and
 * for an effect that lists items. */
enum err
adds_run(struct request *req, struct bloom *bloom,
         const struct bloom_adds *adds)
{
    struct buf *out = req->reply->buf;
    enum bloom_status status;
    size_t words = bloom_make_is_special(bloom)
                       ? BLOOM_PLACED_WORDS(adds->count)
                       : adds->count + 2;
    size_t header = out->len;
    size_t applied;
    size_t body;

    if (buf_reserve(out, adds->count * ANSWER_BYTES + END_BYTES) == NULL ||
        (!adds->created && request_effect_begin(req, words) != OK)) {
        return ERR_NOMEM;
    }
    reply_array(req->reply, adds->count);
    body = out->len;
    status = add_any(req, bloom, adds, &applied);
    if (status != BLOOM_OK) {
        end_early(req, header, body, applied,
                  bloom_make_add_error(req, status));
    }
    return OK;
}

enum err
adds_run_one(struct request *req, struct bloom *bloom, struct slice item)
{
    const struct bloom_adds adds = { .items = &item, .count = 1 };
    enum bloom_status status;
    size_t applied;

    if (buf_reserve(req->reply->buf, ANSWER_BYTES) == NULL ||
        request_effect_begin(req, BLOOM_PLACED_WORDS(1)) != OK) {
        return ERR_NOMEM;
    }
    status = add_any(req, bloom, &adds, &applied);
    return status == BLOOM_OK ? OK : bloom_make_add_error(req, status);
}

/* Tells subscribers which replayed items were new to a deletable filter. */
static void
tell_placed(struct request *req, const struct bloom *bloom,
            const struct slice *words, size_t count)
{
    for (size_t i = 0; i + 1 < count; i += WORDS_EACH) {
        struct bloom_hash hash =
            bloom_hash(bloom, words[i + 1].data, words[i + 1].len);
        bool added = slice_equal(words[i], slice_lit("+"));

        pairs_tell(req, &(struct pairs){ .bloom = bloom,
                                         .hashes = &hash,
                                         .changed = &added,
                                         .count = 1 });
    }
}

enum err
adds_redo(struct request *req, struct bloom *bloom, const struct slice *words,
          size_t count, bool deletes)
{
    const struct redo redo = { .words = words, .count = count };
    struct bloom_info before = { .struct_size = sizeof(before) };
    struct bloom_info after = { .struct_size = sizeof(after) };
    enum bloom_status status;

    if (bloom == NULL) {
        return ERR_BF_NOT_FOUND;
    }
    bloom_get_info(bloom, &before);
    status = deletes ? redo_deletions(bloom, &redo)
                     : redo_adds(bloom, bloom_make_env(req), &redo);
    bloom_get_info(bloom, &after);
    if (status != BLOOM_OK) {
        return bloom_make_add_error(req, status);
    }
    req->dirty += count / WORDS_EACH;
    if (!deletes) {
        bloom_make_notify(req, after.items > before.items, false);
        if (observe_feeds(req, &req->key)) {
            tell_placed(req, bloom, words, count);
        }
    }
    return OK;
}
