/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands on names: DEL UNLINK EXISTS TYPE TOUCH GET. Dispatch has locked the
 * stripes of all keys, so each command is atomic, except for commands of many
 * names, which run in pieces. Runs on the loop of the connection.
 */
#include "access/handlers.h"
#include "engine/dialect.h"
#include "engine/keys.h"
#include "engine/observe.h"

static void
delete_key(struct request *req, const struct key *key, void *ctx)
{
    struct entry *entry = keys_open(req, key);

    (void)ctx;
    if (entry != NULL) {
        keyspace_remove(req->keyspace, key, entry);
        observe_change(req, key, FEED_GONE, CONF_EVENT_GENERIC, "del");
        req->dirty++;
    }
}

/* DEL and UNLINK differ only in name: the background thread always frees large
 * filters. */
static enum err
delete_keys(struct request *req)
{
    keys_each(req, 1, delete_key, NULL);
    req->counted += (int64_t)req->dirty;
    reply_int(req->reply, req->counted);
    return OK;
}

enum err
cmd_del(struct request *req)
{
    return delete_keys(req);
}

enum err
cmd_unlink(struct request *req)
{
    return delete_keys(req);
}

static void
count_key(struct request *req, const struct key *key, void *ctx)
{
    (void)ctx;
    req->counted += keys_peek(req, key) != NULL;
}

/* A name counts as often as it is given. EXISTS does not count as a use of the
 * key. */
enum err
cmd_exists(struct request *req)
{
    keys_each(req, 1, count_key, NULL);
    reply_int(req->reply, req->counted);
    return OK;
}

static void
touch_key(struct request *req, const struct key *key, void *ctx)
{
    struct entry *entry = keys_peek(req, key);

    (void)ctx;
    if (entry != NULL) {
        access_note(keyspace_access(req->keyspace), entry);
        req->counted++;
    }
}

/* TOUCH counts as a use of the key, also for a client in NO-TOUCH. */
enum err
cmd_touch(struct request *req)
{
    keys_each(req, 1, touch_key, NULL);
    reply_int(req->reply, req->counted);
    return OK;
}

enum err
cmd_type(struct request *req)
{
    bool exists = keys_peek(req, &req->key) != NULL;

    reply_simple(req->reply, exists ? dialect_type_name(req->service) : "none");
    return OK;
}

/* GET is for clients that test whether a name is in use. It never returns a
 * value, since no key holds a string. */
enum err
cmd_get(struct request *req)
{
    if (keys_find(req, &req->key) != NULL) {
        return ERR_WRONGTYPE;
    }
    reply_null(req->reply);
    return OK;
}
