/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hooks of net: a connection came, sent commands, broke the protocol, or
 * is gone.
 */
#include "command/client.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "command/dispatch.h"
#include "command/txn.h"
#include "net/registry.h"

#include <stdio.h>

static struct worker *
worker_of(const struct conn *conn)
{
    return conn->loop->owner;
}

static struct conn *
client_accept(struct loop *loop)
{
    const struct worker *worker = loop->owner;
    struct client *client = mem_try_zalloc(sizeof(*client));
    struct keyspace *ks = worker->service->keyspace;
    bool open;

    if (client == NULL) {
        return NULL;
    }
    gate_enter(keyspace_gate(ks), worker->index);
    open = worker->service->conf->requirepass[0] == '\0';
    gate_leave(keyspace_gate(ks), worker->index);
    session_init(&client->session, open);
    client->conn.trusted = open;
    client->session.conn = &client->conn;
    return &client->conn;
}

/* A request that looks like HTTP comes from a browser that was lured here, or
 * from a misdirected proxy: nothing that follows is to be run. */
static bool
is_http(const struct batch *batch)
{
    struct slice name = batch->argv[batch->command[0].first];

    return slice_is_word(name, "post") || slice_is_word(name, "host:");
}

static uint32_t
client_execute(struct conn *conn, const struct batch *batch, uint32_t first)
{
    struct session *session = &client_of(conn)->session;
    uint32_t done;

    session->id = conn->id;
    if (first == 0 && is_http(batch)) {
        log_repeated(LOG_WARN, "command.client", "cut, spoke HTTP", "id=%llu",
                     (unsigned long long)conn->id);
        conn_close(conn);
        return batch->count;
    }
    done = dispatch_batch(worker_of(conn), session, batch, first,
                          conn->loop->turn_ends_ns, &conn->loop->reply);
    conn->trusted = session->authenticated;
    if (session->closing) {
        conn->close_after = true;
    } else if (session->again != NULL) {
        conn_resume_later(conn);
    }
    return done;
}

static void
client_protocol_error(struct conn *conn, const struct stream_error *error)
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
client_limits(struct conn *conn, struct stream_limits *ret_limits)
{
    const struct client_limits *limits = &worker_of(conn)->service->limits;
    bool in = client_of(conn)->session.authenticated;

    ret_limits->unauthenticated = !in;
    ret_limits->args_max = in ? limits->args_max : limits->unauth_args_max;
    ret_limits->bulk_max = in ? limits->bulk_max : limits->unauth_bulk_max;
    ret_limits->query_max = limits->query_max;
}

static void
client_closed(struct conn *conn)
{
    struct client *client = client_of(conn);

    txn_end(&client->session);
    session_fini(&client->session);
    mem_free(client);
}

const struct conn_handler client_handler = {
    .accept = client_accept,
    .execute = client_execute,
    .protocol_error = client_protocol_error,
    .limits = client_limits,
    .closed = client_closed,
};
