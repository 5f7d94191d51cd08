/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLUSTER and its subcommands, READONLY READWRITE ASKING: what a client of a
 * cluster asks a daemon in sidecar mode. The view has the texts of the replies
 * about the cluster. Outside of sidecar mode all of these commands are refused,
 * except READONLY and READWRITE in the dialect valkey.
 */
#include "access/handlers.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cluster/cluster.h"
#include "command/cmd_client.h"
#include "engine/request.h"
#include "info/info_persist.h"
#include "keyspace/slot_keys.h"

/* Finds the view. ERR_CLUSTER_DISABLED: the mode is off. */
static enum err
find_view(const struct request *req, const struct cluster_view **ret_view)
{
    const struct cluster *cluster = req->service->cluster;

    if (cluster == NULL) {
        return ERR_CLUSTER_DISABLED;
    }
    if (cluster->view == NULL) {
        return ERR_CLUSTER_UNREAD;
    }
    *ret_view = cluster->view;
    return OK;
}

static enum err
need_cluster(const struct request *req)
{
    return req->service->cluster == NULL ? ERR_CLUSTER_DISABLED : OK;
}

/* ---- the view ------------------------------------------------------------ */

static enum err
reply_text_of(struct request *req, enum view_reply which)
{
    const struct conn *conn = req->session->conn;
    const struct cluster_view *view = NULL;
    enum err err = find_view(req, &view);
    const struct view_text *text;
    struct slice all;

    if (err != OK) {
        return err;
    }
    text = view_text_for(view, which, conn != NULL && conn->tls != NULL,
                         req->reply->resp);
    all = buf_slice(&text->text);
    if (text->gap == SIZE_MAX) {
        buf_append_slice(req->reply->buf, all);
        return OK;
    }
    buf_append(req->reply->buf, all.data, text->gap);
    reply_int(req->reply, (int64_t)info_persist_position(req->service));
    buf_append(req->reply->buf, all.data + text->gap, all.len - text->gap);
    return OK;
}

enum err
cmd_cluster_slots(struct request *req)
{
    return reply_text_of(req, VIEW_SLOTS);
}

enum err
cmd_cluster_shards(struct request *req)
{
    return reply_text_of(req, VIEW_SHARDS);
}

enum err
cmd_cluster_nodes(struct request *req)
{
    return reply_text_of(req, VIEW_NODES);
}

enum err
cmd_cluster_myid(struct request *req)
{
    const struct cluster_view *view = NULL;
    enum err err = find_view(req, &view);

    if (err == OK) {
        reply_bulk_text(req->reply,
                        view->topology->nodes[view->topology->myself].id);
    }
    return err;
}

enum err
cmd_cluster_myshardid(struct request *req)
{
    const struct cluster_view *view = NULL;
    enum err err = find_view(req, &view);

    if (err != OK) {
        return err;
    }
    if (view->settings.shard_id[0] == '\0') {
        return request_fail(req, ERR_CUSTOM,
                            "the node of sidecar-of does not tell its shard id "
                            "(CLUSTER MYSHARDID)");
    }
    reply_bulk_text(req->reply, view->settings.shard_id);
    return OK;
}

/* Replies with an empty list: there is no bus between daemons. */
enum err
cmd_cluster_links(struct request *req)
{
    enum err err = need_cluster(req);

    if (err == OK) {
        reply_array(req->reply, 0);
    }
    return err;
}

/* The counts of messages are zero, since daemons have no bus. */
enum err
cmd_cluster_info(struct request *req)
{
    const struct cluster_view *view = NULL;
    const struct topology *topology;
    struct buf text = { 0 };
    enum err err = find_view(req, &view);
    bool ok;

    if (err != OK) {
        return err;
    }
    topology = view->topology;
    ok = topology->ok &&
         cluster_has_lease(req->service->cluster, clock_boot_ns());
    buf_printf(&text,
               "cluster_state:%s\r\ncluster_slots_assigned:%u\r\n"
               "cluster_slots_ok:%u\r\ncluster_slots_pfail:%u\r\n"
               "cluster_slots_fail:%u\r\n",
               ok ? "ok" : "fail", view->assigned,
               view->assigned - view->failed - view->failing, view->failing,
               view->failed);
    buf_printf(&text,
               "cluster_known_nodes:%zu\r\ncluster_size:%u\r\n"
               "cluster_current_epoch:%llu\r\ncluster_my_epoch:%llu\r\n"
               "cluster_stats_messages_sent:0\r\n"
               "cluster_stats_messages_received:0\r\n"
               "total_cluster_links_buffer_limit_exceeded:0\r\n",
               topology->nodes_known, view->shards,
               (unsigned long long)topology->current_epoch,
               (unsigned long long)topology->my_epoch);
    reply_text(req->reply, &text);
    return OK;
}

enum err
cmd_cluster_help(struct request *req)
{
    enum err err = need_cluster(req);

    return err == OK ? cmd_help(req) : err;
}

/* ---- keys ---------------------------------------------------------------- */

enum err
cmd_cluster_keyslot(struct request *req)
{
    enum err err = need_cluster(req);

    if (err == OK) {
        reply_int(req->reply, hash_slot_of(req->argv[2]));
    }
    return err;
}

/* A walk through the keys of a slot, which may pause. */
struct slot_walk {
    uint64_t cursor;
    uint64_t count;
    struct slot_names names;
};

static void
free_walk(void *state)
{
    struct slot_walk *walk = state;

    buf_free(&walk->names.list);
    mem_free(walk);
}

static struct slot_keys
keys_of(const struct request *req, uint32_t slot)
{
    return (struct slot_keys){ .slot = slot,
                               .db = atomic_load(&req->session->db),
                               .now_ms = req->now_ms };
}

/* Begins a walk, or continues the paused one. NULL: no memory. */
static struct slot_walk *
take_walk(const struct request *req)
{
    struct slot_walk *walk = request_resumed(req);

    return walk != NULL ? walk : mem_try_zalloc(sizeof(*walk));
}

enum err
cmd_cluster_countkeysinslot(struct request *req)
{
    int64_t slot = args_i64(&req->args);
    enum err err = need_cluster(req);
    struct slot_walk *walk;

    if (err == OK) {
        err = args_end(&req->args);
    }
    if (err == OK && (slot < 0 || slot >= CLUSTER_SLOTS)) {
        err = request_fail(req, ERR_CUSTOM, "Invalid slot");
    }
    walk = err == OK ? take_walk(req) : NULL;
    if (walk == NULL) {
        return err == OK ? ERR_NOMEM : err;
    }
    do {
        const struct slot_keys keys = keys_of(req, (uint32_t)slot);

        walk->cursor = slot_keys_count(req->keyspace, req->worker->index, &keys,
                                       walk->cursor, &walk->count);
        if (walk->cursor != 0 && request_is_late(req)) {
            err = ERR_AGAIN;
        }
    } while (err == OK && walk->cursor != 0);
    if (err == OK) {
        reply_int(req->reply, (int64_t)walk->count);
    }
    return request_end_piece(req, err, walk, free_walk, 0);
}

static void
reply_names(struct request *req, const struct slot_walk *walk)
{
    struct slice name;
    size_t at = 0;

    reply_array(req->reply, walk->names.count);
    while (buf_next_item(&walk->names.list, &at, &name)) {
        reply_bulk(req->reply, name);
    }
}

static enum err
find_names(struct request *req, uint32_t slot, struct slot_walk *walk)
{
    const struct slot_keys keys = keys_of(req, slot);

    while (walk->names.count < walk->names.most) {
        walk->cursor = slot_keys_names(req->keyspace, req->worker->index, &keys,
                                       walk->cursor, &walk->names);
        if (walk->names.list.failed) {
            return walk->names.list.over ? ERR_REPLY_LIMIT : ERR_NOMEM;
        }
        if (walk->cursor == 0) {
            break;
        }
        if (request_is_late(req)) {
            return ERR_AGAIN;
        }
    }
    return OK;
}

enum err
cmd_cluster_getkeysinslot(struct request *req)
{
    int64_t slot = args_i64(&req->args);
    int64_t most = args_i64(&req->args);
    enum err err = need_cluster(req);
    struct slot_walk *walk;

    if (err == OK) {
        err = args_end(&req->args);
    }
    if (err == OK && (slot < 0 || slot >= CLUSTER_SLOTS || most < 0)) {
        err = request_fail(req, ERR_CUSTOM, "Invalid slot or number of keys");
    }
    walk = err == OK ? take_walk(req) : NULL;
    if (walk == NULL) {
        return err == OK ? ERR_NOMEM : err;
    }
    walk->names.most = (size_t)most;
    walk->names.list.limit = req->reply->buf->limit;
    err = find_names(req, (uint32_t)slot, walk);
    if (err == OK) {
        reply_names(req, walk);
    }
    return request_end_piece(req, err, walk, free_walk, walk->names.list.len);
}

/* ---- the connection ------------------------------------------------------ */

enum err
cmd_asking(struct request *req)
{
    enum err err = need_cluster(req);

    if (err == OK) {
        req->session->asking = true;
        reply_ok(req->reply);
    }
    return err;
}

/* Valkey's clients use READONLY outside of a cluster, too, after CLIENT CAPA
 * redirect. In the dialect redis the reply is that there is no cluster. */
static enum err
set_reads_replica(struct request *req, bool reads)
{
    enum err err = req->service->conf->dialect == CONF_DIALECT_VALKEY
                       ? OK
                       : need_cluster(req);

    if (err == OK) {
        cmd_client_lock(req);
        req->session->reads_replica = reads;
        cmd_client_unlock(req);
        reply_ok(req->reply);
    }
    return err;
}

enum err
cmd_readonly(struct request *req)
{
    return set_reads_replica(req, true);
}

enum err
cmd_readwrite(struct request *req)
{
    return set_reads_replica(req, false);
}
