/* SPDX-License-Identifier: BSD-3-Clause
 *
 * REPLICAOF SLAVEOF FAILOVER ROLE, and what a replica says of itself: REPLCONF
 * (PSYNC is in cmd_psync.c). These commands check, change the role, and ask
 * loop 0, which owns the links (service->replication).
 */
#include "access/handlers.h"
#include "access/user.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "command/give_secret.h"
#include "engine/request.h"
#include "engine/role.h"
#include "info/info_persist.h"
#include "info/links.h"
#include "keyspace/key_hash.h"
#include "net/conn.h"
#include "persist/persist.h"
#include "persist/place.h"
#include "repl/wire.h"

#include <stdio.h>

static enum err
no_replication(struct request *req)
{
    return request_fail(req, ERR_CUSTOM, "this server has no replication");
}

static enum err
parse_port(struct request *req, struct slice text, uint32_t *ret_port)
{
    uint64_t port;

    if (!slice_to_u64(text, &port) || port < 1 || port > 65535) {
        return request_fail(req, ERR_CUSTOM, "Invalid master port");
    }
    *ret_port = (uint32_t)port;
    return OK;
}

/* ---- REPLICAOF ----------------------------------------------------------- */

/* Makes the server a primary. This also ends the time after a start in which
 * writes are refused (start-grace). */
static enum err
lead(struct request *req)
{
    struct service *service = req->service;

    if (atomic_load(&service->absent)) {
        return request_fail(req, ERR_CUSTOM,
                            "the data was dropped to make room for the "
                            "primary's, which has not come: to lead with "
                            "what the disk has, stop the server, remove "
                            "replication.state, and start it without "
                            "replicaof");
    }
    role_lead(service);
    atomic_store(&service->grace_until_ms, 0);
    atomic_store(&service->leads_by_word, true);
    if (service->replication.role_changed != NULL) {
        service->replication.role_changed(service->replication.ctx);
    }
    return OK;
}

static enum err
follow(struct request *req)
{
    struct service *service = req->service;
    struct slice host = req->argv[1];
    uint32_t port = 0;
    enum err err = parse_port(req, req->argv[2], &port);

    if (err != OK) {
        return err;
    }
    if (!role_host_is_valid(host)) {
        return request_fail(req, ERR_CUSTOM, "Invalid master host");
    }
    if (!role_host_is_allowed(service->conf, host)) {
        return request_fail(req, ERR_CUSTOM,
                            "replicaof-allowed does not let this server follow "
                            "'%.*s'",
                            slice_shown(host), host.data);
    }
    role_follow(service, host, port);
    return OK;
}

static bool
is_wish_to_lead(const struct request *req)
{
    return slice_is_word(req->argv[1], "no") &&
           slice_is_word(req->argv[2], "one");
}

static enum err
change_role(struct request *req)
{
    struct status_figures figures;

    links_get_figures(req->service, &figures);
    if (figures.failover != STATUS_NO_FAILOVER) {
        return request_fail(req, ERR_CUSTOM,
                            "REPLICAOF not allowed while failing over.");
    }
    return is_wish_to_lead(req) ? lead(req) : follow(req);
}

/* Returns whether the reply has to wait for the role's file: a role that was
 * confirmed should survive a crash. Not if the role has changed again. */
static bool
has_to_wait(const struct request *req, uint64_t epoch)
{
    const struct service *service = req->service;

    return request_may_pause(req) && service->role.epoch == epoch &&
           service->replication.role_is_kept != NULL &&
           !service->replication.role_is_kept(service->replication.ctx, epoch);
}

/* The state of a REPLICAOF that waits is the epoch of the role that it has set.
 */
enum err
cmd_replicaof(struct request *req)
{
    struct role *role = &req->service->role;
    uint64_t *epoch = request_resumed(req);
    uint64_t before = role->epoch;
    enum err err = OK;

    if (req->service->cluster != NULL && !req->obey) {
        return request_fail(req, ERR_CUSTOM,
                            "REPLICAOF not allowed in cluster mode.");
    }
    if (epoch == NULL) {
        err = change_role(req);
    }
    if (err != OK) {
        return err;
    }
    if (epoch == NULL && role->epoch == before && !is_wish_to_lead(req)) {
        reply_simple(req->reply, "OK Already connected to specified master");
        return OK;
    }
    if (has_to_wait(req, epoch != NULL ? *epoch : role->epoch)) {
        if (epoch == NULL) {
            epoch = mem_try_alloc(sizeof(*epoch));
        }
        if (epoch != NULL) {
            *epoch = role->epoch;
            request_wait(req, epoch, mem_free);
            return ERR_AGAIN;
        }
    }
    reply_ok(req->reply);
    return OK;
}

/* ---- FAILOVER ------------------------------------------------------------ */

struct failover_plan {
    struct slice host; /* NULL: any */
    int64_t port, timeout_ms;
    bool force;
};

static enum err
parse_failover(struct request *req, struct failover_plan *plan)
{
    struct args *args = &req->args;

    while (args_left(args) > 0) {
        if (plan->timeout_ms == 0 && args_left(args) >= 2 &&
            args_word(args, "timeout")) {
            plan->timeout_ms = args_i64(args);
            if (args->err == OK && plan->timeout_ms <= 0) {
                return request_fail(req, ERR_CUSTOM,
                                    "FAILOVER timeout must be greater than 0");
            }
        } else if (plan->host.data == NULL && args_left(args) >= 3 &&
                   args_word(args, "to")) {
            plan->host = args_bytes(args);
            plan->port = args_i64(args);
        } else if (args_word(args, "force")) {
            plan->force = true;
        } else {
            return ERR_SYNTAX;
        }
        if (args->err != OK) {
            return args->err;
        }
    }
    return OK;
}

static enum err
check_target(struct request *req, const struct failover_plan *plan,
             const struct links *links)
{
    const struct status_replica *replica;

    if (plan->host.data == NULL) {
        return OK;
    }
    replica = plan->port > 0
                  ? links_find(links, plan->host, (uint64_t)plan->port)
                  : NULL;
    if (replica == NULL) {
        return request_fail(req, ERR_CUSTOM,
                            "FAILOVER target HOST and PORT is not a replica.");
    }
    if (!role_host_is_allowed(req->service->conf, plan->host)) {
        return request_fail(req, ERR_CUSTOM,
                            "replicaof-allowed does not let this server follow "
                            "'%.*s'",
                            slice_shown(plan->host), plan->host.data);
    }
    if (replica->state != STATUS_ONLINE) {
        return request_fail(req, ERR_CUSTOM,
                            "FAILOVER target replica is not online.");
    }
    return OK;
}

/* Returns whether one of the replicas announces where it can be followed. */
static bool
has_target(const struct links *links)
{
    for (size_t i = 0; i < links->count; i++) {
        const struct status_replica *replica = &links->replicas[i];

        if (replica->state != STATUS_PULLS &&
            role_place_is_valid(slice_of(replica->ip), replica->port)) {
            return true;
        }
    }
    return false;
}

/* Checks a FAILOVER in Redis's order. */
static enum err
check_failover(struct request *req, const struct failover_plan *plan,
               const struct links *links)
{
    const char *wrong = NULL;

    if (links->figures.failover != STATUS_NO_FAILOVER) {
        wrong = "FAILOVER already in progress.";
    } else if (req->service->role.replica) {
        wrong = "FAILOVER is not valid when server is a replica.";
    } else if (links_replicas(links) == 0) {
        wrong = "FAILOVER requires connected replicas.";
    } else if (!has_target(links)) {
        wrong = "FAILOVER requires a replica that announces a port, and all "
                "connected ones announce port 0: set replica-announce-port "
                "there.";
    } else if (plan->force &&
               (plan->timeout_ms == 0 || plan->host.data == NULL)) {
        wrong = "FAILOVER with force option requires both a timeout and target "
                "HOST and IP.";
    }
    return wrong != NULL ? request_fail(req, ERR_CUSTOM, "%s", wrong)
                         : check_target(req, plan, links);
}

static enum err
abort_failover(struct request *req)
{
    const struct service *service = req->service;

    if (service->replication.failover_abort == NULL ||
        !service->replication.failover_abort(service->replication.ctx)) {
        return request_fail(req, ERR_CUSTOM, "No failover in progress.");
    }
    reply_ok(req->reply);
    return OK;
}

static enum err
begin_failover(struct request *req, const struct failover_plan *plan)
{
    const struct service *service = req->service;
    struct failover_order order = { .port = (unsigned)plan->port,
                                    .force = plan->force,
                                    .timeout_ms = (uint64_t)plan->timeout_ms };
    char reason[STATUS_TEXT_MAX] = "";
    char *host = NULL;
    bool begun;

    if (service->replication.failover == NULL) {
        return no_replication(req);
    }
    if (plan->host.data != NULL) {
        host = mem_try_copy_text(plan->host);
        if (host == NULL) {
            return ERR_NOMEM;
        }
    }
    order.host = host;
    begun = service->replication.failover(service->replication.ctx, &order,
                                          reason, sizeof(reason));
    mem_free(host);
    if (!begun) {
        return request_fail(req, ERR_CUSTOM, "%s", reason);
    }
    reply_ok(req->reply);
    return OK;
}

enum err
cmd_failover(struct request *req)
{
    struct failover_plan plan = { .host = { NULL, 0 } };
    struct links links;
    enum err err;

    if (req->service->cluster != NULL) {
        return request_fail(req, ERR_CUSTOM,
                            "FAILOVER not allowed in cluster mode.");
    }
    if (req->argc == 2 && slice_is_word(req->argv[1], "abort")) {
        return abort_failover(req);
    }
    err = parse_failover(req, &plan);
    if (err == OK) {
        err = links_get(req->service, &links);
    }
    if (err != OK) {
        return err;
    }
    err = check_failover(req, &plan, &links);
    links_free(&links);
    return err == OK ? begin_failover(req, &plan) : err;
}

/* ---- ROLE ---------------------------------------------------------------- */

static void
reply_number_text(struct reply *reply, uint64_t number)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    reply_bulk_text(reply, text);
}

static void
role_of_primary(struct request *req, const struct links *links)
{
    struct reply *reply = req->reply;
    size_t count = 0;
    size_t place;

    reply_array(reply, 3);
    reply_named_int(reply, "master", info_persist_position(req->service));
    place = reply_begin(reply);
    for (size_t i = 0; i < links->count; i++) {
        const struct status_replica *replica = &links->replicas[i];

        if (replica->state == STATUS_ONLINE) {
            reply_array(reply, 3);
            reply_bulk_text(reply, replica->ip);
            reply_number_text(reply, replica->port);
            reply_number_text(reply, replica->acked);
            count++;
        }
    }
    reply_array_end(reply, place, count);
}

static const char *
link_word(enum status_link link)
{
    switch (link) {
    case STATUS_NO_LINK:
    case STATUS_CONNECT:
        return "connect";
    case STATUS_CONNECTING:
        return "connecting";
    case STATUS_HANDSHAKE:
        return "handshake";
    case STATUS_SYNC:
        return "sync";
    case STATUS_CONNECTED:
        break;
    }
    return "connected";
}

static void
role_of_replica(struct request *req, const struct status_figures *figures)
{
    const struct service *service = req->service;
    struct reply *reply = req->reply;

    reply_array(reply, 5);
    reply_bulk_text(reply, "slave");
    reply_bulk_text(reply, service->role.host);
    reply_int(reply, service->role.port);
    reply_bulk_text(reply, link_word(figures->link));
    reply_int(reply, figures->synced_once
                         ? (int64_t)info_persist_position(service)
                         : -1);
}

enum err
cmd_role(struct request *req)
{
    struct links links;
    enum err err = links_get(req->service, &links);

    if (err != OK) {
        return err;
    }
    if (req->service->role.replica) {
        role_of_replica(req, &links.figures);
    } else {
        role_of_primary(req, &links);
    }
    links_free(&links);
    return OK;
}

/* ---- REPLCONF ------------------------------------------------------------ */

static struct introduction *
introduction_of(struct request *req)
{
    struct session *session = req->session;

    if (session->introduction == NULL) {
        session->introduction = mem_try_zalloc(sizeof(*session->introduction));
    }
    return session->introduction;
}

static enum err
take_port(struct request *req, struct slice text)
{
    struct introduction *introduction = introduction_of(req);
    int64_t port;

    if (introduction == NULL) {
        return ERR_NOMEM;
    }
    if (!slice_to_i64(text, &port) || port < 0 || port > 65535) {
        return ERR_NOT_INTEGER;
    }
    introduction->port = (unsigned)port;
    return OK;
}

static enum err
take_ip(struct request *req, struct slice text)
{
    struct introduction *introduction = introduction_of(req);

    if (introduction == NULL) {
        return ERR_NOMEM;
    }
    if (text.len >= sizeof(introduction->ip)) {
        return request_fail(req, ERR_CUSTOM,
                            "REPLCONF ip-address provided by replica instance "
                            "is too long: %zu bytes",
                            text.len);
    }
    /* The text is shown in a line of INFO. */
    if (text.len > 0 && (!role_host_is_valid(text) ||
                         memchr(text.data, ',', text.len) != NULL)) {
        return request_fail(req, ERR_CUSTOM,
                            "REPLCONF ip-address is neither an address nor a "
                            "name");
    }
    memset(introduction->ip, 0, sizeof(introduction->ip));
    if (text.len > 0) {
        memcpy(introduction->ip, text.data, text.len);
    }
    return OK;
}

/* REPLCONF bloomery <version> run <run id>. */
static enum err
greet(struct request *req)
{
    const struct service *service = req->service;
    struct introduction *introduction = introduction_of(req);
    struct wire_hello hello = { .version = WIRE_VERSION };
    uint64_t version;

    if (introduction == NULL) {
        return ERR_NOMEM;
    }
    if (req->argc != 5 || !slice_to_u64(req->argv[2], &version) ||
        version == 0 || !slice_is_word(req->argv[3], "run") ||
        !history_is_id(req->argv[4])) {
        return ERR_SYNTAX;
    }
    if (version > WIRE_VERSION) {
        return request_fail(req, ERR_CUSTOM,
                            "this server replicates in version %d and not %llu:"
                            " a newer Bloomery cannot follow an older one",
                            WIRE_VERSION, (unsigned long long)version);
    }
    introduction->is_bloomery = true;
    introduction->chain_changes = atomic_load(&req->service->chain_changes);
    memcpy(introduction->run_id, req->argv[4].data, HISTORY_ID_CHARS);
    memcpy(hello.run_id, service->run_id, sizeof(hello.run_id));
    if (service->replication.chain != NULL) {
        hello.chain_count =
            service->replication.chain(service->replication.ctx, hello.chain);
    }
    wire_write_hello(req->reply->buf, &hello);
    return OK;
}

/* Begins a new history. Only a log may do so, no client. */
static enum err
begin_history(struct request *req)
{
    struct persist *persist = req->service->persist;

    if (!req->obey) {
        return request_fail(req, ERR_CUSTOM,
                            "REPLCONF HISTORY belongs into the log");
    }
    if (req->argc != 3 || !history_is_id(req->argv[2])) {
        return ERR_SYNTAX;
    }
    if (persist != NULL) {
        persist_note_history(persist, req->argv[2]);
    }
    reply_ok(req->reply);
    return OK;
}

/* REPLCONF slots <ranges>: what follows PSYNC is limited to these slots. */
static enum err
take_slots(struct request *req, struct slice text)
{
    struct introduction *introduction = introduction_of(req);

    if (introduction == NULL) {
        return ERR_NOMEM;
    }
    if (!key_hash_has_slots()) {
        return request_fail(req, ERR_CUSTOM,
                            "this server stands beside no node of a cluster "
                            "(sidecar-of), so its keys have no slots");
    }
    if (!slot_set_parse(text, &introduction->slots) ||
        slot_set_is_empty(&introduction->slots)) {
        return request_fail(req, ERR_CUSTOM,
                            "REPLCONF slots takes slots and ranges of them, "
                            "such as 0-5460,9000");
    }
    introduction->pulls = true;
    return OK;
}

/* capa refused:<why>: the replica could not load our last snapshot. */
static void
note_refusal(struct request *req, struct slice value)
{
    static const char begin[] = "refused:";
    const size_t len = sizeof(begin) - 1;
    char peer[CONN_ADDRESS_MAX] = "";
    char why[STATUS_TEXT_MAX];

    if (value.len <= len || memcmp(value.data, begin, len) != 0 ||
        req->session->introduction == NULL || req->session->conn == NULL) {
        return;
    }
    (void)snprintf(why, sizeof(why), "%.*s", (int)(value.len - len),
                   value.data + len);
    for (char *c = why; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~' || *c == '"') {
            *c = '?';
        }
    }
    conn_peer_address(req->session->conn, peer);
    metric_add(METRIC_SYNC_REFUSED, 1);
    if (req->service->status != NULL) {
        status_note(req->service->status, STATUS_REFUSED, peer, why);
    }
    log_repeated(LOG_WARN, "command.replconf",
                 "a replica could not load the snapshot that it got",
                 "replica=\"%s\" reason=\"%s\"", peer, why);
}

/* Most capabilities belong to Redis's stream, and are ignored. */
static enum err
take_capability(struct request *req, struct slice value)
{
    struct introduction *introduction;

    if (!slice_is_word(value, "holdings")) {
        note_refusal(req, value);
        return OK;
    }
    introduction = introduction_of(req);
    if (introduction == NULL) {
        return ERR_NOMEM;
    }
    introduction->wants_holdings = true;
    return OK;
}

static enum err
take_fact(struct request *req, struct slice name, struct slice value)
{
    if (slice_is_word(name, "slots")) {
        return take_slots(req, value);
    }
    if (slice_is_word(name, "listening-port")) {
        return take_port(req, value);
    }
    if (slice_is_word(name, "ip-address")) {
        return take_ip(req, value);
    }
    if (slice_is_word(name, "capa")) {
        return take_capability(req, value);
    }
    if (slice_is_word(name, "rdb-only") ||
        slice_is_word(name, "rdb-filter-only")) {
        return ERR_FOREIGN_REPLICA;
    }
    return request_fail(req, ERR_CUSTOM, "Unrecognized REPLCONF option: %.*s",
                        slice_shown(name), name.data);
}

/* ACK and GETACK belong to links. From a client they have no reply, as in
 * Redis, except in EXEC, where each command has one. */
static enum err
ignore(struct request *req)
{
    if (req->worker->in_exec) {
        reply_ok(req->reply);
    }
    return OK;
}

enum err
cmd_replconf(struct request *req)
{
    enum err err = OK;

    if (req->argc % 2 == 0) {
        return ERR_SYNTAX;
    }
    if (req->argc > 1) {
        if (slice_is_word(req->argv[1], "bloomery")) {
            return greet(req);
        }
        if (slice_is_word(req->argv[1], "hash-secret")) {
            return give_secret(req);
        }
        if (slice_is_word(req->argv[1], "history")) {
            return begin_history(req);
        }
        if (slice_is_word(req->argv[1], "ack") ||
            slice_is_word(req->argv[1], "getack")) {
            return ignore(req);
        }
    }
    for (size_t i = 1; i < req->argc && err == OK; i += 2) {
        err = take_fact(req, req->argv[i], req->argv[i + 1]);
    }
    if (err == OK) {
        reply_ok(req->reply);
    }
    return err;
}
