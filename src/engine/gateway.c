/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hooks of net: a connection came, sent commands, broke the protocol, or
 * is gone.
 */
#include "engine/gateway.h"

#include "access/users.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "engine/admit.h"
#include "engine/client.h"
#include "engine/dispatch.h"
#include "engine/effect.h"
#include "engine/pause.h"
#include "engine/refusal.h"
#include "engine/txn.h"
#include "journal/journal.h"
#include "keyspace/gate.h"
#include "net/registry.h"
#include "net/serve.h"
#include "push/pubsub.h"
#include "push/tracking.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* Before the password, the limit of the bytes of all arguments except the
 * longest one. */
enum { UNAUTH_EXTRA_BYTES = 1024 };

static struct worker *
worker_of(const struct conn *conn)
{
    return conn->loop->owner;
}

static struct conn *
gateway_accept(struct loop *loop)
{
    const struct worker *worker = loop->owner;
    struct client *client = mem_try_zalloc(sizeof(*client));
    struct keyspace *ks = worker->service->keyspace;
    const struct users *users = worker->service->users;
    bool open;

    if (client == NULL) {
        return NULL;
    }
    gate_enter(keyspace_gate(ks), worker->index);
    open = !users_ask_password(users);
    session_init(&client->session, open);
    session_set_user(&client->session, users->standard);
    gate_leave(keyspace_gate(ks), worker->index);
    client->conn.owned_bytes = sizeof(*client);
    client->conn.trusted = open;
    client->session.conn = &client->conn;
    client->session.receiver.conn = &client->conn;
    client->session.receiver.loop = worker->index;
    return &client->conn;
}

/* A request that looks like HTTP comes from a browser that a web page misuses,
 * or from a misdirected proxy: none of its bytes may run as a command. */
static bool
is_http(const struct batch *batch)
{
    struct slice name = batch->argv[batch->command[0].first];

    return !batch->in_place && /* canonical commands are RESP */
           (slice_is_word(name, "post") || slice_is_word(name, "host:"));
}

/* Notes that the session waits, for CLIENT LIST and CLIENT UNBLOCK. */
static void
note_waiting(struct session *session)
{
    int runs = SESSION_RUNS;

    if (session->wait != CONN_RUNS && !session->closing) {
        (void)atomic_compare_exchange_strong(&session->blocked, &runs,
                                             SESSION_WAITS);
    }
}

/* ---- a replica's connection ---------------------------------------------- */

static const char *const NOT_DETACHED =
    "the connection cannot become a replica's: other requests or replies of it "
    "are under way, or there are no descriptors";
static const char *const NOT_TAKEN = "-ERR replicas are not taken now\r\n";

/* Hands the connection over to loop 0. Commands behind PSYNC would get no
 * reply, so PSYNC must be alone. Once the connection is detached, an error can
 * be sent only through the socket itself; a replica without a reply tries
 * again. */
static void
become_link(struct conn *conn, bool alone)
{
    struct session *session = &client_of(conn)->session;
    const struct service *service = worker_of(conn)->service;
    struct reply reply = { &conn->loop->reply, session->resp };
    struct handover *handover = session->handover;

    session->handover = NULL;
    handover->fd = alone ? serve_detach(conn, &handover->tls) : -1;
    if (handover->fd < 0) {
        reply_error(&reply, "ERR", slice_of(NOT_DETACHED));
        metric_add(METRIC_ERROR_REPLIES, 1);
        session_free_handover(handover);
    } else if (!service->replication.hand_over(service->replication.ctx,
                                               handover)) {
        if (handover->tls == NULL) {
            (void)send(handover->fd, NOT_TAKEN, strlen(NOT_TAKEN),
                       MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        metric_add(METRIC_ERROR_REPLIES, 1);
        (void)close(handover->fd);
        session_free_handover(handover);
    }
}

/* Returns the memory that the client uses apart from its connection. */
static uint64_t
owned_bytes(const struct session *session)
{
    return sizeof(struct client) + session->multi_bytes +
           session_text_bytes(session) + session->again_bytes +
           pubsub_memory(&session->receiver) +
           tracking_memory(&session->receiver);
}

/* Runs of adds and lookups change only the memory of tracking. */
static void
count_owned(struct conn *conn, struct worker *worker)
{
    const struct session *session = &client_of(conn)->session;

    if (worker->ran_one || session->receiver.tracker != NULL) {
        worker->ran_one = false;
        conn_set_owned(conn, owned_bytes(session));
        atomic_store_explicit(&conn->exempt, session->no_evict,
                              memory_order_relaxed);
    }
}

static uint32_t
gateway_execute(struct conn *conn, const struct batch *batch, uint32_t first)
{
    struct session *session = &client_of(conn)->session;
    struct worker *worker = worker_of(conn);
    uint32_t done;

    session->id = conn_id(conn);
    session->receiver.id = conn_id(conn);
    if (first == 0 && is_http(batch)) {
        log_repeated(LOG_WARN, "command.client", "cut, spoke HTTP", "id=%llu",
                     (unsigned long long)conn_id(conn));
        conn_close(conn);
        return batch->count;
    }
    done = dispatch_batch(worker, session, batch, first,
                          conn->loop->turn_ends_ns, &conn->loop->reply);
    conn->trusted = session->authenticated;
    count_owned(conn, worker);
    if (conn->hold_until < worker->hold) {
        conn->hold_until = worker->hold;
    }
    note_waiting(session);
    if (session->handover != NULL) {
        become_link(conn, done == batch->count);
    }
    if (session->closing) { /* it unsubscribes before its client sees the end */
        observe_leave(worker, session);
        conn_leave(conn);
    } else if (session->wait != CONN_RUNS) {
        conn_park(conn, session->wait, session->wait_ms);
    } else if (session->again != NULL || session->rights != NULL) {
        conn_resume_later(conn);
    }
    return done;
}

static void
gateway_protocol_error(struct conn *conn, const struct parse_error *error)
{
    struct reply reply = { &conn->loop->reply, client_of(conn)->session.resp };
    const char *text = err_text(error->err);
    const char *hole = strstr(text, "%s");
    char line[128];

    metric_add(METRIC_PROTOCOL_ERRORS, 1);
    if (error->err == ERR_QUERY_BUFFER) {
        metric_add(METRIC_QUERY_LIMIT_CUTS, 1);
    }
    if (hole != NULL) {
        (void)snprintf(line, sizeof(line), "%.*s%s%s", (int)(hole - text), text,
                       error->detail, hole + 2);
        text = line;
    }
    stats_bump(&worker_of(conn)->stats->error[error->err], 1);
    metric_add(METRIC_ERROR_REPLIES, 1);
    reply_error(&reply, err_prefix(error->err), slice_of(text));
}

static void
gateway_limits(struct conn *conn, struct parse_limits *ret_limits)
{
    const struct client_limits *limits = &worker_of(conn)->service->limits;
    bool in = client_of(conn)->session.authenticated;

    ret_limits->unauthenticated = !in;
    ret_limits->args_max = in ? limits->args_max : limits->unauth_args_max;
    ret_limits->bulk_max = in ? limits->bulk_max : limits->unauth_bulk_max;
    ret_limits->query_max =
        in ? limits->query_max : ret_limits->bulk_max + UNAUTH_EXTRA_BYTES;
}

static void
gateway_killed(struct conn *conn)
{
    observe_leave(worker_of(conn), &client_of(conn)->session);
}

static void
gateway_closed(struct conn *conn)
{
    struct client *client = client_of(conn);

    observe_leave(worker_of(conn), &client->session);
    txn_end(&client->session);
    session_fini(&client->session);
    mem_free(client);
}

/* Returns whether commands that wait for room may go on: no pause is on, the
 * inboxes have room, and the journal's queue has room or writes are refused. */
static bool
gateway_has_room(struct loop *loop)
{
    const struct worker *worker = loop->owner;
    const struct service *service = worker->service;
    struct gate *gate = keyspace_gate(service->keyspace);
    bool room;

    gate_enter(gate, worker->index);
    room = !pause_waits(service, PAUSE_WRITES) &&
           !inboxes_are_crowded(service->inboxes) &&
           (service->journal == NULL || journal_has_room(service->journal) ||
            refusal_of_writes(service) != OK);
    gate_leave(gate, worker->index);
    return room;
}

static void
gateway_turn_end(struct loop *loop)
{
    effect_kick(loop->owner);
}

/* Returns whether a held value is a message and no reply. In RESP2 a message is
 * an array that begins with one of these words, or a line of MONITOR, which no
 * reply looks like. The client may have unsubscribed since: was_subscribed.
 */
static bool
is_told_in_resp2(const struct session *session, struct slice value)
{
    static const char *const heads[] = {
        "*3\r\n$7\r\nmessage\r\n",       "*4\r\n$8\r\npmessage\r\n",
        "*3\r\n$8\r\nsmessage\r\n",      "*3\r\n$9\r\nsubscribe\r\n",
        "*3\r\n$10\r\npsubscribe\r\n",   "*3\r\n$10\r\nssubscribe\r\n",
        "*3\r\n$11\r\nunsubscribe\r\n",  "*3\r\n$12\r\npunsubscribe\r\n",
        "*3\r\n$12\r\nsunsubscribe\r\n",
    };

    if (value.len > 1 && value.data[0] == '+') {
        return value.data[1] >= '0' && value.data[1] <= '9';
    }
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        size_t len = strlen(heads[i]);

        if (value.len > len && memcmp(value.data, heads[i], len) == 0) {
            return session->was_subscribed;
        }
    }
    return false;
}

static bool
is_no_answer(const struct session *session, struct slice value)
{
    return reply_is_push(value) || is_told_in_resp2(session, value);
}

/* Replaces held replies by an error that says that the command was applied but
 * may not survive. Messages and errors stay: they claim no durability. */
static void
gateway_give_up(struct conn *conn, struct slice held, struct buf *ret_replies)
{
    const struct session *session = &client_of(conn)->session;
    struct reply reply = { ret_replies, session->resp };
    uint64_t replies = 0;

    while (held.len > 0) {
        struct slice value = reply_first(held);

        CHECK(value.len > 0);

        if (is_no_answer(session, value) || value.data[0] == '-') {
            buf_append_slice(ret_replies, value);
        } else {
            reply_error(&reply, err_prefix(ERR_MISCONF_UNKNOWN),
                        slice_of(err_text(ERR_MISCONF_UNKNOWN)));
            replies++;
        }
        held.data += value.len;
        held.len -= value.len;
    }
    stats_bump(&worker_of(conn)->stats->error[ERR_MISCONF_UNKNOWN], replies);
    metric_add(METRIC_ERROR_REPLIES, (int64_t)replies);
}

const struct conn_handler gateway_handler = {
    .accept = gateway_accept,
    .execute = gateway_execute,
    .protocol_error = gateway_protocol_error,
    .limits = gateway_limits,
    .closed = gateway_closed,
    .killed = gateway_killed,
    .has_room = gateway_has_room,
    .turn_end = gateway_turn_end,
    .give_up = gateway_give_up,
};
