/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A connection reads the head into its own buffer; later bytes are read into
 * the loop's buffer and dropped. After the answer it ends its half of the
 * socket, and waits for the client to do the same: closing it while bytes of
 * the client are unread would make the kernel discard the answer.
 */
#include "net/http.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/run_clock.h"
#include "net/pending.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HTTP_MAGIC = 0x68747470, TICK_MS = 500 };

enum state {
    READS, /* the head has not ended */
    SENDS,
    ENDS, /* waits for the client's end */
    CLOSES
};

struct http_conn {
    uint32_t magic;
    enum state state;
    struct http *http;
    struct http_conn *next, *prev;
    uint64_t since_ms; /* by the run clock */
    bool is_loopback;  /* came in over the loopback interface */
    bool denied;       /* by protected mode */
    bool ended;        /* the client sends no more */
    uv_tcp_t tcp;
    uv_write_t write;
    uv_shutdown_t shutdown;
    struct buf headers, body; /* on their way */
    size_t len;               /* of the head that has come */
    char head[HTTP_HEAD_MAX];
};

/* ---- the end ------------------------------------------------------------- */

static void
on_http_closed(uv_handle_t *handle)
{
    struct http_conn *conn = handle->data;

    CHECK(conn->magic == HTTP_MAGIC);
    conn->magic = 0;
    buf_free(&conn->headers);
    buf_free(&conn->body);
    mem_free(conn);
}

static void
close_conn(struct http_conn *conn)
{
    struct http *http = conn->http;

    if (conn->state == CLOSES) {
        return;
    }
    conn->state = CLOSES;
    *(conn->prev != NULL ? &conn->prev->next : &http->first) = conn->next;
    *(conn->next != NULL ? &conn->next->prev : &http->last) = conn->prev;
    http->count--;
    if (http->count == 0) {
        (void)uv_timer_stop(&http->timer);
    }
    uv_close((uv_handle_t *)&conn->tcp, on_http_closed);
}

static void
cut_client(struct http_conn *conn, const char *why)
{
    if (conn->state != ENDS) {
        metric_add(METRIC_WEB_CUTS, 1);
        log_repeated(LOG_NOTICE, "net.http", "cut a client of metrics-port",
                     "reason=\"%s\"", why);
    }
    close_conn(conn);
}

static void
on_tick(uv_timer_t *timer)
{
    struct http *http = timer->data;
    uint64_t limit_ms = http->loop->env->limits->metrics_seconds * 1000;
    uint64_t now_ms = run_clock_ms();

    while (http->first != NULL && now_ms - http->first->since_ms >= limit_ms) {
        cut_client(http->first, "metrics-timeout has passed");
    }
}

/* ---- the answer ---------------------------------------------------------- */

static const char *
reason_of(unsigned status)
{
    static const struct {
        unsigned status;
        const char *reason;
    } reasons[] = {
        { 200, "OK" },
        { 400, "Bad Request" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 421, "Misdirected Request" },
        { 431, "Request Header Fields Too Large" },
        { 503, "Service Unavailable" },
        { 505, "HTTP Version Not Supported" },
    };

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (reasons[i].status == status) {
            return reasons[i].reason;
        }
    }
    return "Error";
}

static void
put_headers(struct buf *to, const struct http_reply *reply)
{
    buf_printf(to, "HTTP/1.1 %u %s\r\n", reply->status,
               reason_of(reply->status));
    buf_printf(to, "Content-Type: %s\r\nContent-Length: %zu\r\n", reply->type,
               reply->body.len);
    buf_printf(to, "Content-Security-Policy: %s\r\n",
               reply->policy != NULL ? reply->policy
                                     : "default-src 'none'; "
                                       "frame-ancestors 'none'");
    if (reply->status == 405) {
        buf_append_slice(to, slice_lit("Allow: GET, HEAD\r\n"));
    }
    buf_append_slice(to,
                     slice_lit("X-Content-Type-Options: nosniff\r\n"
                               "Cross-Origin-Resource-Policy: same-origin\r\n"
                               "Referrer-Policy: no-referrer\r\n"
                               "Cache-Control: no-store\r\n"
                               "Connection: close\r\n\r\n"));
}

void
http_fail(struct http_reply *reply, unsigned status, const char *text)
{
    buf_free(&reply->body);
    *reply = (struct http_reply){ .status = status,
                                  .type = "text/plain; charset=utf-8" };
    buf_printf(&reply->body, "%u %s: %s\n", status, reason_of(status), text);
}

static void
on_shutdown(uv_shutdown_t *shutdown, int status)
{
    (void)shutdown; /* the client's end or the timer closes */
    (void)status;
}

static void
on_written(uv_write_t *write, int status)
{
    struct http_conn *conn = write->data;

    CHECK(conn->magic == HTTP_MAGIC);
    if (conn->state == CLOSES) {
        return;
    }
    conn->state = ENDS;
    if (status != 0 || conn->ended ||
        uv_shutdown(&conn->shutdown, (uv_stream_t *)&conn->tcp, on_shutdown) !=
            0) {
        close_conn(conn);
    }
}

static void
send_reply(struct http_conn *conn, struct http_reply *reply, bool with_body)
{
    uv_buf_t parts[2];

    metric_add(METRIC_WEB_REQUESTS, 1);
    metric_add(METRIC_WEB_REFUSALS, reply->status != 200);
    put_headers(&conn->headers, reply);
    conn->body = reply->body;
    parts[0] = loop_uv_buf(buf_slice(&conn->headers));
    parts[1] = loop_uv_buf(buf_slice(&conn->body));
    conn->state = SENDS;
    conn->write.data = conn;
    if (conn->headers.failed || conn->body.failed ||
        uv_write(&conn->write, (uv_stream_t *)&conn->tcp, parts,
                 with_body && conn->body.len > 0 ? 2 : 1, on_written) != 0) {
        close_conn(conn);
        return;
    }
    metric_add(METRIC_NET_OUTPUT,
               (int64_t)(conn->headers.len + (with_body ? conn->body.len : 0)));
}

static const char *
explain(unsigned status)
{
    switch (status) {
    case 431:
        return "the head of a request has at most 8192 bytes";
    case 505:
        return "this port speaks HTTP/1.0 and HTTP/1.1";
    default:
        return "this is no request of HTTP/1.0 or HTTP/1.1";
    }
}

static void
answer_request(struct http_conn *conn, const struct http_head *head)
{
    struct http *http = conn->http;
    struct http_reply reply = { .status = 200,
                                .type = "text/plain; charset=utf-8",
                                .body = { .limit = HTTP_BODY_MAX } };

    if (head->status != 0) {
        http_fail(&reply, head->status, explain(head->status));
    } else if (conn->denied) {
        http_fail(&reply, 403,
                  "protected mode is on and no password is set, so only "
                  "clients of the server's machine are served");
    } else if (conn->is_loopback && head->host.len > 0 &&
               !http_host_is_plain(head->host)) {
        http_fail(&reply, 421,
                  "over the loopback interface, name this server as localhost "
                  "or by its address; a proxy must set Host likewise");
    } else if (head->method == HTTP_OTHER) {
        http_fail(&reply, 405, "this port answers GET and HEAD");
    } else {
        pending_flush(http->loop); /* the answer may take long */
        http->answer(http->ctx, head, &reply);
    }
    if (reply.body.failed) {
        http_fail(&reply, 503, "there is no memory for the answer");
    }
    send_reply(conn, &reply, head->method != HTTP_HEAD || head->status != 0);
}

/* ---- the request --------------------------------------------------------- */

static void
on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    struct http_conn *conn = handle->data;

    (void)suggested;
    if (conn->state == READS) {
        *ret_buf = uv_buf_init(conn->head + conn->len,
                               (unsigned)(HTTP_HEAD_MAX - conn->len));
    } else {
        *ret_buf = uv_buf_init(conn->http->loop->read_buffer, LOOP_READ_BYTES);
    }
}

static void
on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct http_conn *conn = stream->data;
    struct http_head head;

    (void)buf;
    CHECK(conn->magic == HTTP_MAGIC);
    if (nread == UV_EOF && conn->state == SENDS) {
        conn->ended = true; /* the client may still read the answer */
        return;
    }
    if (nread < 0) {
        close_conn(conn);
        return;
    }
    if (nread == 0) {
        return;
    }
    metric_add(METRIC_NET_INPUT, nread);
    metric_add(METRIC_READS, 1);
    if (conn->state != READS) {
        return;
    }
    conn->len += (size_t)nread;
    if (http_head_parse((struct slice){ conn->head, conn->len }, &head) !=
        HTTP_MORE) {
        answer_request(conn, &head);
    }
}

/* ---- the beginning ------------------------------------------------------- */

static bool
came_by_loopback(int fd)
{
    struct sockaddr_storage near = { .ss_family = AF_UNSPEC };
    const struct sockaddr_in *in = (const struct sockaddr_in *)&near;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&near;
    socklen_t len = sizeof(near);

    if (getsockname(fd, (struct sockaddr *)&near, &len) != 0) {
        return true;
    }
    if (near.ss_family == AF_INET) {
        return (ntohl(in->sin_addr.s_addr) >> 24) == 127;
    }
    return near.ss_family != AF_INET6 || IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

static void
join(struct http_conn *conn)
{
    struct http *http = conn->http;

    conn->prev = http->last;
    *(http->last != NULL ? &http->last->next : &http->first) = conn;
    http->last = conn;
    http->count++;
    if (http->count == 1) {
        CHECK(uv_timer_start(&http->timer, on_tick, TICK_MS, TICK_MS) == 0);
    }
}

void
http_open(struct http *http, int fd, bool denied)
{
    enum mem_claim before = mem_set_claim(MEM_OPEN);
    struct http_conn *conn = mem_try_zalloc(sizeof(*conn));
    bool opened;

    (void)mem_set_claim(before);
    if (conn == NULL || http->loop->stopping) {
        mem_free(conn);
        (void)close(fd);
        return;
    }
    while (http->count > 0 &&
           http->count >= http->loop->env->limits->metrics_clients) {
        cut_client(http->first, "there are metrics-max-clients newer ones");
    }
    conn->magic = HTTP_MAGIC;
    conn->http = http;
    conn->since_ms = run_clock_ms();
    conn->is_loopback = came_by_loopback(fd);
    conn->denied = denied;
    CHECK(uv_tcp_init(&http->loop->uv, &conn->tcp) == 0);
    conn->tcp.data = conn;
    join(conn);
    opened = uv_tcp_open(&conn->tcp, fd) == 0;
    if (!opened) {
        (void)close(fd);
    }
    if (!opened ||
        uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read) != 0) {
        close_conn(conn);
    }
}

void
http_start(struct http *http, struct loop *loop, http_answer_fn callback,
           void *ctx)
{
    *http = (struct http){ .loop = loop, .answer = callback, .ctx = ctx };
    CHECK(uv_timer_init(&loop->uv, &http->timer) == 0);
    http->timer.data = http;
}

void
http_stop(struct http *http)
{
    if (http->loop == NULL) {
        return;
    }
    while (http->first != NULL) {
        close_conn(http->first);
    }
    uv_close((uv_handle_t *)&http->timer, NULL);
    http->loop = NULL;
}
