/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands on the names of filters: DEL UNLINK EXISTS TYPE TOUCH. Dispatch
 * holds the stripes of all named keys, so each command is one step for
 * everybody else. Runs on the loop of the connection.
 */
#include "base/metrics.h"
#include "command/request.h"

/* DEL and UNLINK differ in name only: a large filter is always given back by
 * the background thread. */
static enum err
delete_keys(struct request *req)
{
    for (size_t i = 1; i < req->argc; i++) {
        struct key key = request_key(req, i);

        if (keyspace_delete(req->keyspace, &key, req->now_ms)) {
            req->dirty++;
        }
    }
    reply_int(req->reply, (int64_t)req->dirty);
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

static bool
key_exists(const struct request *req, size_t position)
{
    struct key key = request_key(req, position);
    bool exists = keyspace_find(req->keyspace, &key, req->now_ms) != NULL;

    metric_add(exists ? METRIC_KEYSPACE_HITS : METRIC_KEYSPACE_MISSES, 1);
    return exists;
}

/* A name counts as often as it is given. */
static enum err
count_keys(struct request *req)
{
    int64_t found = 0;

    for (size_t i = 1; i < req->argc; i++) {
        found += key_exists(req, i);
    }
    reply_int(req->reply, found);
    return OK;
}

enum err
cmd_exists(struct request *req)
{
    return count_keys(req);
}

/* There is no access time to refresh: no eviction looks at one. */
enum err
cmd_touch(struct request *req)
{
    return count_keys(req);
}

enum err
cmd_type(struct request *req)
{
    reply_simple(req->reply, key_exists(req, 1) ? "bloomfltr" : "none");
    return OK;
}
