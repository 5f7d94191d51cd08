/* SPDX-License-Identifier: BSD-3-Clause
 *
 * PSYNC SYNC: a replica's connection becomes a link, which loop 0 owns
 * (service->replication).
 */
#include "access/handlers.h"
#include "access/user.h"
#include "base/mem.h"
#include "engine/request.h"
#include "info/links.h"
#include "journal/history.h"

/* Parses the arguments of PSYNC; ? -1 asks for a full synchronization. */
static enum err
parse_psync(struct request *req, struct handover *handover)
{
    struct slice history = args_bytes(&req->args);
    struct slice position = args_bytes(&req->args);

    handover->failover =
        args_left(&req->args) > 0 && args_word(&req->args, "failover");
    if (args_end(&req->args) != OK) {
        return ERR_SYNTAX;
    }
    if (slice_equal(history, slice_lit("?"))) {
        return OK;
    }
    if (!slice_to_u64(position, &handover->position)) {
        return ERR_NOT_INTEGER;
    }
    if (!history_is_id(history)) {
        return request_fail(req, ERR_CUSTOM, "not the id of a history");
    }
    memcpy(handover->history, history.data, HISTORY_ID_CHARS);
    return OK;
}

static bool
is_known(const struct session *session)
{
    return session->introduction != NULL && session->introduction->is_bloomery;
}

static enum err
check_psync(struct request *req, const struct handover *handover)
{
    const struct service *service = req->service;

    if (service->replication.hand_over == NULL || req->session->conn == NULL) {
        return request_fail(req, ERR_CUSTOM, "this server has no replication");
    }
    if (req->session->introduction->pulls && handover->failover) {
        return request_fail(req, ERR_CUSTOM,
                            "after REPLCONF slots, PSYNC has no FAILOVER");
    }
    /* A replica that takes over (FAILOVER) is served by any server. */
    if (service->role.replica && !handover->failover &&
        !links_has_data(service)) {
        return ERR_NOMASTERLINK;
    }
    return OK;
}

static void
leave_for(struct session *session, struct handover *handover)
{
    const struct introduction *introduction = session->introduction;

    handover->fd = -1;
    handover->id = session->id;
    handover->user = session->user != NULL ? user_ref(session->user) : NULL;
    handover->port = introduction->port;
    handover->chain_changes = introduction->chain_changes;
    memcpy(handover->run_id, introduction->run_id, sizeof(handover->run_id));
    memcpy(handover->ip, introduction->ip, sizeof(handover->ip));
    handover->pulls = introduction->pulls;
    handover->wants_holdings = introduction->wants_holdings;
    handover->slots = introduction->slots;
    session->handover = handover;
    session->closing = true; /* from now on only the link sends */
}

static void
free_nothing(void *state)
{
    (void)state;
}

/* The connection becomes a link when this batch is done (gateway.c), and loop 0
 * replies. Earlier replies must have left before. */
enum err
cmd_psync(struct request *req)
{
    struct handover *handover;
    enum err err;

    if (!is_known(req->session)) {
        return ERR_FOREIGN_REPLICA;
    }
    if (req->reply->buf->len > 0) {
        request_pause(req, req->session, free_nothing);
        return ERR_AGAIN;
    }
    handover = mem_try_zalloc(sizeof(*handover));
    if (handover == NULL) {
        return ERR_NOMEM;
    }
    err = parse_psync(req, handover);
    if (err == OK) {
        err = check_psync(req, handover);
    }
    if (err != OK) {
        mem_free(handover);
        return err;
    }
    leave_for(req->session, handover);
    return OK;
}

enum err
cmd_sync(struct request *req)
{
    if (is_known(req->session)) {
        return request_fail(req, ERR_CUSTOM, "a Bloomery follows with PSYNC");
    }
    return ERR_FOREIGN_REPLICA;
}
