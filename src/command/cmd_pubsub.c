/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SUBSCRIBE, BF.SUBSCRIBE, PUBLISH and the like, and PUBSUB, over push/pubsub.
 * A client that publishes to itself gets the reply of PUBLISH before the
 * message, as in Redis from 7.2 on; 7.0 has the other order. A message waits
 * for the disk like the reply of its PUBLISH.
 */
#include "access/handlers.h"
#include "base/glob.h"
#include "base/mem.h"
#include "command/help.h"
#include "engine/keys.h"
#include "engine/observe.h"
#include "net/conn.h"
#include "push/pubsub_publish.h"

/* ---- confirmations ------------------------------------------------------- */

enum {
    CONFIRMATION_BYTES = 64, /* of a confirmation without its name, at most */
    PIECE_NS = 500 * 1000,   /* of counting; then others have their turn */
    MUCH_WORK = 16 * 1024    /* of matching, after which the clock is asked */
};

/* Returns the kind of subscription that the command is about. */
static enum pubsub_kind
kind_of(const struct request *req)
{
    switch (req->command->id) {
    case CMD_ID_PSUBSCRIBE:
    case CMD_ID_PUNSUBSCRIBE:
        return PUBSUB_PATTERN;
    case CMD_ID_SSUBSCRIBE:
    case CMD_ID_SUNSUBSCRIBE:
    case CMD_ID_SPUBLISH:
    case CMD_ID_PUBSUB_SHARDCHANNELS:
    case CMD_ID_PUBSUB_SHARDNUMSUB:
        return PUBSUB_SHARD;
    case CMD_ID_BF_SUBSCRIBE:
    case CMD_ID_BF_UNSUBSCRIBE:
        return PUBSUB_FILTER;
    default:
        return PUBSUB_CHANNEL;
    }
}

/* Returns the count in a confirmation: channels and patterns together, or shard
 * channels, or filters. */
static size_t
count_as_confirmed(const struct request *req, enum pubsub_kind kind)
{
    const struct receiver *receiver = &req->session->receiver;

    return kind == PUBSUB_SHARD || kind == PUBSUB_FILTER
               ? pubsub_count(receiver, kind)
               : pubsub_count(receiver, PUBSUB_CHANNEL) +
                     pubsub_count(receiver, PUBSUB_PATTERN);
}

static void
confirm(struct request *req, const struct slice *name, size_t count)
{
    bool filter = kind_of(req) == PUBSUB_FILTER;

    reply_header(req->reply, req->reply->resp == 2 ? '*' : '>', 3);
    reply_bulk_text(req->reply, filter ? "bf.unsubscribe" : req->command->name);
    if (name != NULL) {
        reply_bulk(req->reply, filter ? pubsub_feed_key(*name) : *name);
    } else {
        reply_null(req->reply);
    }
    reply_int(req->reply, (int64_t)count);
}

/* Reserves space for all confirmations before anything changes, so that nothing
 * must be undone. */
static bool
reserve(struct request *req, size_t count, size_t bytes)
{
    return buf_reserve(req->reply->buf, bytes + count * CONFIRMATION_BYTES) !=
           NULL;
}

/* CLIENT REPLY OFF does not drop confirmations of subscriptions; in EXEC it
 * drops the whole reply of EXEC. */
static void
subscriptions_changed(struct request *req)
{
    session_hears(req->session);
    req->worker->reply_stays = !req->worker->in_exec;
}

/* Returns the names that the words of the command stand for, by the positions
 * of the words: for filters the names of their topics. The caller frees the
 * array, and the bytes. NULL: no memory. */
static struct slice *
names_of(const struct request *req, enum pubsub_kind kind, struct buf *bytes)
{
    struct slice *names = mem_try_alloc(req->argc * sizeof(*names));
    size_t at = 0;

    for (size_t i = 1; names != NULL && i < req->argc; i++) {
        const struct feed_key key = { .db = req->session->db,
                                      .name = req->argv[i] };

        names[i] = req->argv[i];
        if (kind == PUBSUB_FILTER) {
            pubsub_feed_name(bytes, &key);
        }
    }
    if (bytes->failed) {
        mem_free(names);
        return NULL;
    }
    for (size_t i = 1; kind == PUBSUB_FILTER && names != NULL && i < req->argc;
         i++) {
        size_t len = FEED_DB_BYTES + req->argv[i].len;

        names[i] = (struct slice){ bytes->data + at, len };
        at += len;
    }
    return names;
}

/* ---- subscribing --------------------------------------------------------- */

static enum err
check_channel(const struct request *req, struct slice name)
{
    return name.len > req->service->conf->pubsub_max_channel_bytes
               ? ERR_CHANNEL_LONG
               : OK;
}

/* Refuses a name that is too long, or a pattern that could take too much work
 * when a message comes. */
static enum err
check_name(const struct request *req, enum pubsub_kind kind, struct slice name)
{
    size_t longest = req->service->conf->pubsub_max_channel_bytes;

    if (kind != PUBSUB_PATTERN || glob_is_plain(name)) {
        return check_channel(req, name);
    }
    if (!glob_is_fair(name)) {
        return ERR_PATTERN_LONG;
    }
    return glob_work_max(name, longest) > GLOB_WORK ? ERR_PATTERN_WORK : OK;
}

/* Checks the limits of one client's subscriptions. *ret_bytes gets the length
 * of all names together. */
static enum err
check_limits(struct request *req, enum pubsub_kind kind,
             const struct slice *names, size_t *ret_bytes)
{
    const struct receiver *receiver = &req->session->receiver;
    const struct conf *conf = req->service->conf;
    size_t count = 0, bytes = pubsub_bytes(receiver);
    enum err err;

    for (unsigned i = 0; i < PUBSUB_KINDS; i++) {
        count += pubsub_count(receiver, i);
    }
    *ret_bytes = 0;
    for (size_t i = 1; i < req->argc; i++) {
        *ret_bytes += names[i].len;
        err = check_name(req, kind, req->argv[i]);
        if (err != OK) {
            return err;
        }
        if (!pubsub_has(receiver, kind, names[i])) {
            count++;
            bytes += names[i].len;
        }
    }
    return count > (uint64_t)conf->pubsub_max_subscriptions ||
                   bytes > conf->pubsub_max_bytes
               ? ERR_SUBSCRIPTIONS
               : OK;
}

/* Undoes the new subscriptions among the first names. */
static void
unsubscribe_new(struct request *req, const struct slice *names,
                const bool *is_new, size_t end)
{
    for (size_t i = 1; i < end; i++) {
        if (is_new[i]) {
            (void)pubsub_unsubscribe(req->service->pubsub,
                                     &req->session->receiver, kind_of(req),
                                     names[i]);
        }
    }
}

static enum pubsub_result
subscribe_one(struct request *req, struct slice name, size_t position)
{
    enum pubsub_kind kind = kind_of(req);
    struct pubsub *pubsub = req->service->pubsub;
    struct receiver *receiver = &req->session->receiver;

    return kind == PUBSUB_FILTER
               ? pubsub_subscribe_filter(pubsub, receiver, name,
                                         request_key(req, position).hash)
               : pubsub_subscribe(pubsub, receiver, kind, name);
}

/* Subscribes to all names, or without memory to none; is_new[i] says which were
 * new. */
static enum err
subscribe_all(struct request *req, const struct slice *names, bool *is_new)
{
    for (size_t i = 1; i < req->argc; i++) {
        enum pubsub_result result = subscribe_one(req, names[i], i);

        if (result == PUBSUB_NOMEM) {
            unsubscribe_new(req, names, is_new, i);
            return ERR_NOMEM;
        }
        is_new[i] = result == PUBSUB_OK;
    }
    return OK;
}

/* SUBSCRIBE PSUBSCRIBE SSUBSCRIBE. */
enum err
cmd_subscribe(struct request *req)
{
    enum pubsub_kind kind = kind_of(req);
    size_t count = count_as_confirmed(req, kind);
    size_t bytes;
    enum err err = check_limits(req, kind, req->argv, &bytes);
    bool *is_new;

    if (err != OK || !reserve(req, req->argc, bytes)) {
        return err;
    }
    is_new = mem_try_zalloc(req->argc * sizeof(*is_new));
    err = is_new != NULL ? subscribe_all(req, req->argv, is_new) : ERR_NOMEM;
    for (size_t i = 1; err == OK && i < req->argc; i++) {
        count += is_new[i];
        confirm(req, &req->argv[i], count);
    }
    mem_free(is_new);
    subscriptions_changed(req);
    return err;
}

/* ---- filters ------------------------------------------------------------- */

/* Checks that the keys are not too many for one step, and that each filter may
 * have subscribers. Keyed and incomplete filters may not, and no filter may on
 * a replica whose link is down, since the replica may miss changes. */
static enum err
check_filters(const struct request *req)
{
    const struct service *service = req->service;

    if (req->argc - 1 > (size_t)service->conf->bf_max_subscribe) {
        return ERR_BF_SUBSCRIBE_KEYS;
    }
    if (service->role.replica && !atomic_load(&service->link_up)) {
        return ERR_BF_SUBSCRIBE_LINK;
    }
    for (size_t i = 1; i < req->argc; i++) {
        struct key key = request_key(req, i);
        const struct entry *entry =
            keyspace_find(req->keyspace, &key, req->now_ms);

        if (entry != NULL && bloom_is_keyed(&entry->bloom)) {
            return ERR_BF_SUBSCRIBE_KEYED;
        }
        if (entry != NULL && bloom_is_incomplete(&entry->bloom)) {
            return ERR_BF_INCOMPLETE;
        }
    }
    return OK;
}

/* Posts the answer for one key. It goes to the client the same way as changes,
 * so that it arrives after all changes that came before it. */
static void
answer_key(struct request *req, size_t position)
{
    struct key key = request_key(req, position);
    struct entry *entry = keyspace_find(req->keyspace, &key, req->now_ms);
    struct feed_answer is = { .missing = entry == NULL, .at_ms = req->now_ms };

    if (entry != NULL) {
        struct bloom_info info = { .struct_size = sizeof(info) };

        keys_use(req, entry);
        bloom_get_info(&entry->bloom, &info);
        is.incarnation = entry->incarnation;
        is.items = info.items;
        is.layers = info.layers;
    }
    pubsub_feed_answer(&req->session->receiver,
                       &(struct feed_key){ key.db, key.name, key.hash }, &is,
                       &req->worker->notices);
}

/* BF.SUBSCRIBE. */
enum err
cmd_bf_subscribe(struct request *req)
{
    enum err err = check_filters(req);
    struct buf bytes = { 0 };
    struct slice *names;
    bool *is_new;
    size_t len;

    if (err != OK) {
        return err;
    }
    names = names_of(req, PUBSUB_FILTER, &bytes);
    is_new = mem_try_zalloc(req->argc * sizeof(*is_new));
    err = names != NULL && is_new != NULL
              ? check_limits(req, PUBSUB_FILTER, names, &len)
              : ERR_NOMEM;
    if (err == OK) {
        err = subscribe_all(req, names, is_new);
        session_hears(req->session);
    }
    for (size_t i = 1; err == OK && i < req->argc; i++) {
        answer_key(req, i);
    }
    mem_free(is_new);
    mem_free(names);
    buf_free(&bytes);
    return err;
}

/* ---- unsubscribing ------------------------------------------------------- */

static void
unsubscribe_one(struct request *req, enum pubsub_kind kind, struct slice name)
{
    struct pubsub *pubsub = req->service->pubsub;
    struct receiver *receiver = &req->session->receiver;
    bool had = pubsub_has(receiver, kind, name);

    /* Unsubscribing may free the bytes of the name. */
    confirm(req, &name, count_as_confirmed(req, kind) - had);
    (void)pubsub_unsubscribe(pubsub, receiver, kind, name);
}

/* Unsubscribes from the names that the command has. */
static enum err
unsubscribe_named(struct request *req, enum pubsub_kind kind)
{
    struct buf bytes = { 0 };
    struct slice *names = names_of(req, kind, &bytes);

    for (size_t i = 1; names != NULL && i < req->argc; i++) {
        unsubscribe_one(req, kind, names[i]);
    }
    buf_free(&bytes);
    mem_free(names);
    return names != NULL ? OK : ERR_NOMEM;
}

/* UNSUBSCRIBE PUNSUBSCRIBE SUNSUBSCRIBE BF.UNSUBSCRIBE. */
enum err
cmd_unsubscribe(struct request *req)
{
    enum pubsub_kind kind = kind_of(req);
    const struct receiver *receiver = &req->session->receiver;
    bool all = req->argc == 1;
    size_t count = all ? 1 + pubsub_count(receiver, kind) : req->argc;
    size_t bytes = all ? pubsub_bytes(receiver) : 0;
    struct slice name;
    enum err err = OK;

    for (size_t i = 1; i < req->argc; i++) {
        bytes += req->argv[i].len;
    }
    if (!reserve(req, count, bytes)) {
        return OK; /* dispatch sees the failed buffer and replies why */
    }
    if (all && pubsub_count(receiver, kind) == 0) {
        confirm(req, NULL, count_as_confirmed(req, kind));
    }
    if (!all) {
        err = unsubscribe_named(req, kind);
    }
    while (all && pubsub_any(receiver, kind, &name)) {
        unsubscribe_one(req, kind, name);
    }
    subscriptions_changed(req);
    return err;
}

/* ---- publishing ---------------------------------------------------------- */

static void
free_publishing(void *state)
{
    publishing_fini(state);
    mem_free(state);
}

/* Pauses a PUBLISH that has to count more receivers. */
static enum err
publish_later(struct request *req, const struct publishing *publishing)
{
    struct publishing *kept = mem_try_alloc(sizeof(*kept));

    if (kept == NULL) {
        return ERR_NOMEM;
    }
    *kept = *publishing;
    request_pause(req, kept, free_publishing);
    return ERR_AGAIN;
}

/* PUBLISH SPUBLISH. */
enum err
cmd_publish(struct request *req)
{
    const struct conn *conn = req->session->conn;
    struct pubsub *pubsub = req->service->pubsub;
    struct publishing fresh = { .kind = kind_of(req) == PUBSUB_SHARD
                                            ? NOTICE_SHARD_MESSAGE
                                            : NOTICE_MESSAGE };
    struct publishing *kept = request_resumed(req);
    struct publishing *publishing = kept != NULL ? kept : &fresh;
    uint64_t until_ns =
        request_may_pause(req) ? req->worker->now_ns + PIECE_NS : UINT64_MAX;
    enum err err = check_channel(req, req->argv[1]);

    if (err != OK) {
        return err;
    }
    publishing->channel = req->argv[1]; /* may have moved */
    if (!publishing_count(pubsub, publishing, until_ns)) {
        return kept != NULL ? ERR_AGAIN : publish_later(req, publishing);
    }
    publishing_send(pubsub, publishing, req->session->id, req->argv[2],
                    &req->worker->notices);
    /* Receivers may rely on what the publisher wrote before. */
    if (conn != NULL && req->worker->hold < conn->hold_until) {
        req->worker->hold = conn->hold_until;
    }
    reply_int(req->reply, (int64_t)publishing->count);
    return OK;
}

/* ---- PUBSUB -------------------------------------------------------------- */

struct listing {
    struct buf bulks; /* the names that match, encoded */
    uint64_t count;   /* names in `bulks` */
    struct buf names; /* names to match, from names_at on */
    size_t names_at;
    uint64_t cursor; /* where the search for more names goes on */
    bool begun;
};

static void
free_listing(void *state)
{
    struct listing *listing = state;

    buf_free(&listing->bulks);
    buf_free(&listing->names);
    mem_free(listing);
}

/* Matches the copied names. ERR_AGAIN: this took PIECE_NS, the rest is for the
 * next call. */
static enum err
match_names(struct request *req, struct listing *listing)
{
    bool any = req->argc == 2;
    struct reply reply = { &listing->bulks, req->reply->resp };
    struct slice name;

    while (buf_next_item(&listing->names, &listing->names_at, &name)) {
        size_t work = GLOB_WORK;
        enum glob_verdict verdict =
            any ? GLOB_YES : glob_match(req->argv[2], name, false, &work);

        if (verdict == GLOB_OVER) {
            return ERR_PATTERN_WORK;
        }
        if (verdict == GLOB_YES) {
            reply_bulk(&reply, name);
            listing->count++;
        }
        if (work < GLOB_WORK - MUCH_WORK && request_is_late(req)) {
            return ERR_AGAIN;
        }
    }
    buf_reset(&listing->names, SIZE_MAX);
    listing->names_at = 0;
    if (listing->bulks.failed) {
        return listing->bulks.over ? ERR_REPLY_LIMIT : ERR_NOMEM;
    }
    return OK;
}

/* Lists the matching names, a piece at a time. */
static enum err
list_on(struct request *req, struct listing *listing)
{
    enum err err = match_names(req, listing);

    while (err == OK && (!listing->begun || listing->cursor != 0)) {
        if (listing->begun && request_is_late(req)) {
            return ERR_AGAIN;
        }
        listing->begun = true;
        listing->cursor = pubsub_names_from(req->service->pubsub, kind_of(req),
                                            listing->cursor, &listing->names);
        err = listing->names.failed ? ERR_NOMEM : match_names(req, listing);
    }
    return err;
}

/* PUBSUB CHANNELS and SHARDCHANNELS. */
enum err
cmd_pubsub_channels(struct request *req)
{
    struct listing *listing = request_resumed(req);
    enum err err;

    if (req->argc > 3) {
        return help_wrong_subcommand(req);
    }
    if (req->argc == 3 && !glob_is_fair(req->argv[2])) {
        return ERR_PATTERN_LONG;
    }
    if (listing == NULL) {
        listing = mem_try_zalloc(sizeof(*listing));
        if (listing == NULL) {
            return ERR_NOMEM;
        }
        listing->bulks.limit = req->reply->buf->limit;
    }
    err = list_on(req, listing);
    if (err == OK) {
        reply_array(req->reply, listing->count);
        buf_append_slice(req->reply->buf, buf_slice(&listing->bulks));
    }
    return request_end_piece(req, err, listing, free_listing, 0);
}

/* PUBSUB NUMSUB and SHARDNUMSUB. */
enum err
cmd_pubsub_numsub(struct request *req)
{
    enum pubsub_kind kind = kind_of(req);

    reply_array(req->reply, (req->argc - 2) * 2);
    for (size_t i = 2; i < req->argc; i++) {
        reply_bulk(req->reply, req->argv[i]);
        reply_int(req->reply, (int64_t)pubsub_subscribers(req->service->pubsub,
                                                          kind, req->argv[i]));
    }
    return OK;
}

enum err
cmd_pubsub_numpat(struct request *req)
{
    reply_int(req->reply,
              (int64_t)pubsub_names(req->service->pubsub, PUBSUB_PATTERN));
    return OK;
}
