/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Seconds are counted, not measured: a loop that stalled must not cut clients
 * whose bytes are in the socket.
 */
#include "net/timeouts.h"

#include "base/log.h"
#include "base/metrics.h"
#include "net/hold.h"
#include "net/outbox.h"
#include "net/pending.h"

#include <poll.h>

/* How long replies to a client that has ended its half of the socket wait. */
enum { ENDED_MS_MAX = 60 * 1000 };

/* Returns whether the client of a connection that waits has gone. While a
 * connection is read from, reading finds that out. */
static bool
has_left(struct conn *conn, uint64_t now)
{
    struct pollfd end = { .fd = conn->fd, .events = POLLRDHUP };
    bool waits = conn_is_parked(conn) || conn->held_bytes > 0;
    uint64_t patience_ms = conn->wait == CONN_FOR_EVENT ? 0 : ENDED_MS_MAX;

    if (conn->reading || poll(&end, 1, 0) < 0) {
        return false;
    }
    if ((end.revents & (POLLHUP | POLLERR)) != 0) {
        return true;
    }
    if (conn->wait == CONN_RETRIES) {
        return false; /* its turn comes next, and shows that */
    }
    if ((end.revents & POLLRDHUP) == 0 || !waits) {
        conn->ended_ms = 0;
        return false;
    }
    if (conn->ended_ms == 0) {
        conn->ended_ms = now;
    }
    return now - conn->ended_ms > patience_ms;
}

/* Returns whether the client must still send the rest of a request, or of a TLS
 * record. */
static bool
is_inside_request(const struct conn *conn)
{
    return conn->input.partial != NULL ||
           (conn->tls != NULL && tls_is_inside_record(conn->tls));
}

/* Counts this second, if the server waits for the password or for the rest of a
 * request. */
static void
count_second(struct conn *conn, uint64_t now)
{
    bool waits = conn->reading && !conn->rested;

    conn->rested = !conn->reading;
    if (conn_is_trusted(conn)) {
        conn->auth_seconds = 0;
    }
    if (!waits) {
        return;
    }
    if (!conn_is_trusted(conn)) {
        conn->auth_seconds++;
    }
    if (is_inside_request(conn)) {
        conn->request_seconds++;
        conn->active_ms = now; /* request-timeout applies, not the idle one */
    }
}

static bool
takes_too_long(const struct conn *conn)
{
    const struct net_limits *limits = conn->loop->env->limits;
    uint64_t auth_seconds = limits->auth_seconds;
    uint64_t request_seconds = limits->request_seconds;
    uint64_t rate = limits->request_min_rate;

    if (!conn_is_trusted(conn) && auth_seconds > 0) {
        return conn->auth_seconds >= auth_seconds;
    }
    if (request_seconds == 0 || conn->request_seconds < request_seconds) {
        return false;
    }
    return rate == 0 || conn->request_seconds - request_seconds >=
                            stream_kept_bytes(&conn->input) / rate;
}

static uint64_t
excused(uint64_t since_ms, uint64_t stalled_ms, uint64_t now)
{
    return now - since_ms > stalled_ms ? since_ms + stalled_ms : now;
}

void
timeouts_excuse(struct conn *conn, uint64_t stalled_ms)
{
    uint64_t now = uv_now(&conn->loop->uv);

    conn->active_ms = excused(conn->active_ms, stalled_ms, now);
    if (conn->ended_ms > 0) {
        conn->ended_ms = excused(conn->ended_ms, stalled_ms, now);
    }
    if (conn->outbox != NULL && conn->outbox->over_since_ms > 0) {
        conn->outbox->over_since_ms =
            excused(conn->outbox->over_since_ms, stalled_ms, now);
    }
}

void
timeouts_check(struct conn *conn)
{
    const struct net_limits *limits = conn->loop->env->limits;
    uint64_t idle_ms = limits->idle_seconds * 1000;
    uint64_t now = uv_now(&conn->loop->uv);

    if (has_left(conn, now) || conn->usage.condemned_bytes > 0) {
        pending_close(conn);
        return;
    }
    hold_trim(conn);
    if (conn->wait != CONN_RUNS || conn->held_bytes > 0 || outbox_moved(conn)) {
        conn->active_ms = now; /* server or client are busy with its replies */
    }
    count_second(conn, now);
    if (outbox_is_overdue(conn, now)) {
        metric_add(METRIC_OUTPUT_LIMIT_CUTS, 1);
        log_repeated(LOG_WARN, "net.timeouts",
                     "cut, replies left unread for too long",
                     "id=%llu bytes=%u", (unsigned long long)conn_id(conn),
                     (unsigned)conn->output_bytes);
        pending_close(conn);
    } else if (takes_too_long(conn)) {
        metric_add(METRIC_REQUEST_TIMEOUTS, 1);
        log_repeated(LOG_NOTICE, "net.timeouts",
                     conn_is_trusted(conn) ? "cut, a request took too long"
                                           : "cut, the password or the TLS "
                                             "handshake took too long",
                     "id=%llu", (unsigned long long)conn_id(conn));
        pending_close(conn);
    } else if (idle_ms > 0 && conn->output_class != OUTPUT_PUBSUB &&
               now - conn->active_ms >= idle_ms) {
        pending_close(conn);
    }
}
