/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FLUSHDB and FLUSHALL. Dispatch has raised the gate, so that all names vanish
 * as one step, whatever their number. With ASYNC, and without a word, their
 * memory comes back in the background while others go on. With SYNC it is back
 * before the reply, and until then the server stands still, as Redis's does:
 * for who must have the memory before he loads anew.
 */
#include "command/request.h"

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

/* Dirty even if there was nothing: Redis repeats every flush to its replicas
 * too, and one that failed to arrive somewhere is worth repeating. */
static void
finish(struct request *req, bool sync)
{
    if (sync) {
        while (keyspace_reclaim(req->keyspace, req->worker->index, req->now_ms,
                                RECLAIM_US)) {
        }
        keyspace_wait_freed(req->keyspace);
    }
    req->dirty = 1;
    reply_ok(req->reply);
}

enum err
cmd_flushall(struct request *req)
{
    bool sync = false;
    enum err err = parse_mode(&req->args, &sync);

    if (err == OK) {
        keyspace_flush_all(req->keyspace);
        finish(req, sync);
    }
    return err;
}

enum err
cmd_flushdb(struct request *req)
{
    bool sync = false;
    enum err err = parse_mode(&req->args, &sync);

    if (err == OK) {
        keyspace_flush_db(req->keyspace, atomic_load(&req->session->db));
        finish(req, sync);
    }
    return err;
}
