/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLIENT PAUSE UNPAUSE UNBLOCK. The first two run under the raised gate.
 * UNBLOCK sets a state in the session and wakes its loop.
 */
#include "access/handlers.h"
#include "command/help.h"
#include "engine/client.h"
#include "engine/pause.h"
#include "net/registry.h"

enum err
cmd_client_pause(struct request *req)
{
    struct slice text = args_bytes(&req->args);
    bool all = true;
    int64_t for_ms;

    if (args_left(&req->args) > 1) {
        return help_wrong_subcommand(req);
    }
    if (args_left(&req->args) == 1 && args_word(&req->args, "WRITE")) {
        all = false;
    } else if (args_left(&req->args) == 1 && !args_word(&req->args, "ALL")) {
        return request_fail(req, ERR_CUSTOM,
                            "CLIENT PAUSE mode must be WRITE or ALL");
    }
    if (!slice_to_i64(text, &for_ms)) {
        return request_fail(req, ERR_CUSTOM,
                            "timeout is not an integer or out of range");
    }
    if (for_ms < 0) {
        return request_fail(req, ERR_CUSTOM, "timeout is negative");
    }
    pause_begin(req->service, PAUSE_BY_CLIENT, (uint64_t)for_ms,
                all ? PAUSE_ALL : PAUSE_WRITES);
    reply_ok(req->reply);
    return OK;
}

enum err
cmd_client_unpause(struct request *req)
{
    pause_end(req->service, PAUSE_BY_CLIENT);
    reply_ok(req->reply);
    return OK;
}

struct unblock {
    enum session_block how;
    struct loop *loop; /* of the client that was unblocked, or NULL */
};

static void
unblock_if_open(void *ctx, struct conn *conn)
{
    struct unblock *unblock = ctx;
    int open = SESSION_BLOCKED;

    if (atomic_compare_exchange_strong(&client_of(conn)->session.blocked, &open,
                                       (int)unblock->how)) {
        unblock->loop = conn->loop;
    }
}

enum err
cmd_client_unblock(struct request *req)
{
    struct unblock unblock = { .how = SESSION_UNBLOCK_TIMEOUT };
    struct slice id_text = args_bytes(&req->args);
    int64_t id;

    if (args_left(&req->args) > 1) {
        return help_wrong_subcommand(req);
    }
    if (args_left(&req->args) == 1 && args_word(&req->args, "ERROR")) {
        unblock.how = SESSION_UNBLOCK_ERROR;
    } else if (args_left(&req->args) == 1 &&
               !args_word(&req->args, "TIMEOUT")) {
        return request_fail(req, ERR_CUSTOM,
                            "CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    }
    if (!slice_to_i64(id_text, &id)) {
        return ERR_NOT_INTEGER;
    }
    if (id > 0) {
        (void)registry_visit_one(req->service->registry, (uint64_t)id,
                                 unblock_if_open, &unblock);
    }
    if (unblock.loop != NULL) {
        loop_wake(unblock.loop);
    }
    reply_int(req->reply, unblock.loop != NULL);
    return OK;
}
