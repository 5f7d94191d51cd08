/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RENAME RENAMENX MOVE: a filter gets another name, or the same name in another
 * database, and keeps its incarnation and expiry. Nothing is copied. A replayed
 * command replaces a key that is there: the original command saw none or an
 * expired one, and a replay ignores the clock. So the effect of RENAMENX is a
 * RENAME, and a replayed MOVE overwrites.
 */
#include "access/handlers.h"
#include "engine/keys.h"
#include "engine/observe.h"
#include "engine/request.h"

/* Renames after both names were checked. Both stripes are locked. */
static enum err
rename_key(struct request *req, const struct key *to)
{
    struct entry *entry;
    enum err err;

    (void)keys_open(req, to); /* removes an expired entry */
    entry = keys_open(req, &req->key);
    CHECK(entry != NULL);
    err = keyspace_rename(req->keyspace, &req->key, entry, to);
    if (err == OK) {
        keys_made(req, to);
        keys_walk_again(req, to);
        req->dirty = 1;
    }
    return err;
}

/* Returns whether the source exists; an expired one is removed. */
static bool
source_exists(struct request *req)
{
    if (keyspace_find(req->keyspace, &req->key, req->now_ms) != NULL) {
        return true;
    }
    (void)keys_open(req, &req->key);
    return false;
}

static bool
target_exists(struct request *req, const struct key *to)
{
    return !req->obey && keyspace_find(req->keyspace, to, req->now_ms) != NULL;
}

static enum err
begin_rename_effect(struct request *req, const struct key *to)
{
    enum err err = request_effect_begin(req, 3);

    if (err == OK) {
        request_effect_add(req, slice_lit("RENAME"));
        request_effect_add(req, req->key.name);
        request_effect_add(req, to->name);
    }
    return err;
}

static enum err
rename_to(struct request *req, const struct key *to)
{
    enum err err = begin_rename_effect(req, to);

    if (err == OK) {
        err = rename_key(req, to);
    }
    if (err == OK) {
        observe_change(req, &req->key, FEED_GONE, CONF_EVENT_GENERIC,
                       "rename_from");
        observe_change(req, to, FEED_CHANGED, CONF_EVENT_GENERIC, "rename_to");
    }
    return err;
}

/* RENAME and RENAMENX. */
enum err
cmd_rename(struct request *req)
{
    bool only_new = req->command->id == CMD_ID_RENAMENX;
    struct key to = request_key(req, 2);
    enum err err = OK;

    if (!source_exists(req)) {
        return ERR_NO_KEY;
    }
    if (!slice_equal(to.name, req->key.name) &&
        !(only_new && target_exists(req, &to))) {
        err = rename_to(req, &to);
    }
    if (err == OK && only_new) {
        reply_int(req->reply, req->dirty > 0 ? 1 : 0);
    } else if (err == OK) {
        reply_ok(req->reply);
    }
    return err;
}

enum err
cmd_move(struct request *req)
{
    struct key to = key_named(req->key.name, req->key.db);
    bool exists;
    enum err err;

    (void)args_bytes(&req->args); /* the key */
    err = request_parse_db(req, args_bytes(&req->args), &to.db);
    if (err == OK && to.db == req->key.db) {
        err = request_fail(req, ERR_CUSTOM,
                           "source and destination objects are the same");
    }
    if (err != OK) {
        return err;
    }
    exists = source_exists(req);
    if (!exists && req->obey) { /* the original found the key */
        return ERR_NO_KEY;
    }
    if (exists && !target_exists(req, &to)) {
        err = rename_key(req, &to);
    }
    if (err == OK && req->dirty > 0) {
        observe_change(req, &req->key, FEED_GONE, CONF_EVENT_GENERIC,
                       "move_from");
        observe_change(req, &to, FEED_CHANGED, CONF_EVENT_GENERIC, "move_to");
    }
    if (err == OK) {
        reply_int(req->reply, (int64_t)req->dirty);
    }
    return err;
}
