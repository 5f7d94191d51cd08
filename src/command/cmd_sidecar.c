/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SIDECAR: what members of a cluster ask of each other, and operators of them.
 * These subcommands move the keys of slots ahead of a planned move. They check,
 * and loop 0 does the work (service->slots).
 */
#include "base/buf.h"
#include "cluster/cluster.h"
#include "engine/handlers.h"
#include "engine/request.h"
#include "engine/role.h"
#include "journal/history.h"
#include "keyspace/key_hash.h"

#include <stdio.h>

enum { REASON_MAX = 256 };

/* Parses slots, and checks that this server's keys have any. */
static enum err
parse_slots(struct request *req, struct slice text, struct slot_set *ret_slots)
{
    if (req->service->slots.prepare == NULL || !key_hash_has_slots()) {
        return request_fail(req, ERR_CUSTOM,
                            "this server stands beside no node of a cluster "
                            "(sidecar-of)");
    }
    if (!slot_set_parse(text, ret_slots) || slot_set_is_empty(ret_slots)) {
        return request_fail(req, ERR_CUSTOM,
                            "slots are numbers below 16384 and ranges of them, "
                            "such as 0-5460,9000");
    }
    return OK;
}

/* Refuses slots that our node owns: their keys must not be replaced by a copy,
 * or deleted. */
static enum err
check_not_owned(struct request *req, const struct slot_set *slots)
{
    const struct cluster *cluster = req->service->cluster;
    const struct topology *topology;

    if (cluster == NULL || cluster->view == NULL) {
        return ERR_CLUSTER_UNREAD;
    }
    topology = cluster->view->topology;
    slot_set_foreach (slots, slot) {
        if (topology->owner[slot] == topology->myself) {
            return request_fail(req, ERR_CUSTOM,
                                "the node beside this server owns slot %u",
                                slot);
        }
    }
    return OK;
}

/* Finds the server beside a node, as claims do. */
static enum err
find_server(struct request *req, struct slice id, struct slice *ret_host,
            uint64_t *ret_port)
{
    const struct cluster *cluster = req->service->cluster;
    const struct view_node *node;
    int at;

    if (cluster == NULL || cluster->view == NULL) {
        return ERR_CLUSTER_UNREAD;
    }
    at = topology_find(cluster->view->topology, id);
    if (at < 0) {
        return request_fail(req, ERR_CUSTOM,
                            "the node beside this server knows no node '%.*s'",
                            slice_shown(id), id.data);
    }
    node = &cluster->view->nodes[at];
    *ret_host = slice_of(node->host);
    *ret_port = node->port[req->service->conf->tls_replication];
    return OK;
}

static enum err
parse_server(struct request *req, struct slice *ret_host, uint64_t *ret_port)
{
    *ret_host = req->argv[3];
    if (req->argc == 4) {
        return find_server(req, req->argv[3], ret_host, ret_port);
    }
    if (!slice_to_u64(req->argv[4], ret_port)) {
        *ret_port = 0;
    }
    return OK;
}

/* SIDECAR PREPARE slots node-id, or slots host port */
enum err
cmd_sidecar_prepare(struct request *req)
{
    struct slot_set slots;
    struct slice host = { NULL, 0 };
    char reason[REASON_MAX];
    uint64_t port = 0;
    enum err err = parse_slots(req, req->argv[2], &slots);

    if (err == OK && req->argc > 5) {
        err = ERR_SYNTAX;
    }
    if (err == OK) {
        err = parse_server(req, &host, &port);
    }
    if (err != OK) {
        return err;
    }
    if (!role_host_is_valid(host)) {
        return request_fail(req, ERR_CUSTOM, "Invalid host");
    }
    if (port < 1 || port > 65535) {
        return request_fail(req, ERR_CUSTOM, "Invalid port");
    }
    if (!role_host_is_allowed(req->service->conf, host)) {
        return request_fail(req, ERR_CUSTOM,
                            "replicaof-allowed does not let this server follow "
                            "'%.*s'",
                            slice_shown(host), host.data);
    }
    err = check_not_owned(req, &slots);
    if (err != OK) {
        return err;
    }
    if (!req->service->slots.prepare(req->service->ctx, &slots, host,
                                     (unsigned)port, reason, sizeof(reason))) {
        return request_fail(req, ERR_CUSTOM, "%s", reason);
    }
    reply_ok(req->reply);
    return OK;
}

/* SIDECAR ABANDON slots */
enum err
cmd_sidecar_abandon(struct request *req)
{
    struct slot_set slots = { { 0 } };
    char reason[REASON_MAX];
    enum err err = parse_slots(req, req->argv[2], &slots);

    if (err == OK) {
        err = check_not_owned(req, &slots);
    }
    if (err != OK) {
        return err;
    }
    if (!req->service->slots.abandon(req->service->ctx, &slots, reason,
                                     sizeof(reason))) {
        return request_fail(req, ERR_CUSTOM, "%s", reason);
    }
    reply_ok(req->reply);
    return OK;
}

/* SIDECAR FINISH slots history position */
enum err
cmd_sidecar_finish(struct request *req)
{
    struct slot_set slots;
    char reason[REASON_MAX];
    uint64_t position;
    enum err err = parse_slots(req, req->argv[2], &slots);

    if (err != OK) {
        return err;
    }
    if (!history_is_id(req->argv[3])) {
        return request_fail(req, ERR_CUSTOM, "not the id of a history");
    }
    if (!slice_to_u64(req->argv[4], &position)) {
        return ERR_NOT_INTEGER;
    }
    if (!req->service->slots.finish(req->service->ctx, &slots, req->argv[3],
                                    position, reason, sizeof(reason))) {
        return request_fail(req, ERR_CUSTOM, "%s", reason);
    }
    reply_ok(req->reply);
    return OK;
}

/* SIDECAR STATUS: the lines of INFO about transfers of slots. */
enum err
cmd_sidecar_status(struct request *req)
{
    const struct service *service = req->service;
    struct buf text = { 0 };

    if (service->slots.describe != NULL) {
        service->slots.describe(service->ctx, &text);
    }
    if (text.failed) {
        buf_free(&text);
        return ERR_NOMEM;
    }
    reply_verbatim(req->reply, buf_slice(&text));
    buf_free(&text);
    return OK;
}
