/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FLUSHDB, FLUSHALL and SWAPDB. Dispatch has raised the gate: all names vanish
 * or change places in one step. By default and with ASYNC a background thread
 * frees the memory. With SYNC it is free before the reply, and the server
 * serves nothing until then, as in Redis: for operators who need the memory to
 * load new data.
 */
#include "access/handlers.h"
#include "engine/observe.h"
#include "engine/request.h"
#include "keyspace/databases.h"
#include "keyspace/reclaim.h"

enum { RECLAIM_US = 10 * 1000 };

static enum err
parse_mode(struct args *args, bool *ret_sync)
{
    bool sync = args_word(args, "sync");

    if (!sync) {
        (void)args_word(args, "async");
    }
    *ret_sync = sync;
    return args_end(args);
}

/* Sets dirty even if nothing was there: Redis also sends every flush to its
 * replicas, and repeating a flush that a replica has missed is useful. */
static void
finish(struct request *req, bool sync)
{
    if (sync) {
        while (keyspace_reclaim_dead(req->keyspace, req->worker->index,
                                     RECLAIM_US)) {
        }
        keyspace_wait_freed(req->keyspace);
    }
    req->dirty = 1;
    reply_ok(req->reply);
}

/* FLUSHALL and FLUSHDB. */
enum err
cmd_flush(struct request *req)
{
    bool sync = false;
    enum err err = parse_mode(&req->args, &sync);

    if (err != OK) {
        return err;
    }
    if (req->command->id == CMD_ID_FLUSHALL) {
        keyspace_flush_all(req->keyspace);
        observe_flush(req, FEED_ALL_DBS, FEED_GONE);
    } else {
        uint32_t db = atomic_load(&req->session->db);

        keyspace_flush_db(req->keyspace, db);
        observe_flush(req, db, FEED_GONE);
    }
    finish(req, sync);
    return OK;
}

static enum err
parse_db(struct request *req, const char *which, uint32_t *ret_db)
{
    int64_t db = 0;

    if (!slice_to_i64(args_bytes(&req->args), &db) || db < INT32_MIN ||
        db > INT32_MAX) {
        return request_fail(req, ERR_CUSTOM, "invalid %s DB index", which);
    }
    if (db < 0 || db >= keyspace_databases(req->keyspace)) {
        return ERR_DB_RANGE;
    }
    *ret_db = (uint32_t)db;
    return OK;
}

enum err
cmd_swapdb(struct request *req)
{
    uint32_t first = 0;
    uint32_t second = 0;
    enum err err;

    if (req->service->cluster != NULL && !req->obey) {
        return request_fail(req, ERR_CUSTOM,
                            "SWAPDB is not allowed in cluster mode");
    }
    err = parse_db(req, "first", &first);
    if (err == OK) {
        err = parse_db(req, "second", &second);
    }
    if (err != OK) {
        return err;
    }
    if (first != second) {
        keyspace_swap_db(req->keyspace, first, second);
        observe_flush(req, FEED_ALL_DBS, FEED_CHANGED);
    }
    req->dirty = 1;
    reply_ok(req->reply);
    return OK;
}
