/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The read and reply buffers are the loop's: nothing here keeps a pointer into
 * them after the callback; input that has to wait is copied to conn->kept.
 */
#include "net/serve.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "net/hold.h"
#include "net/outbox.h"
#include "net/pending.h"
#include "net/push.h"
#include "net/registry.h"

#include <fcntl.h>
#include <unistd.h>

enum {
    REPLY_KEEP_BYTES = 1024 * 1024,
    UNTRUSTED_READ_BYTES = 1024,
    OPENED_KEEP_BYTES = LOOP_READ_BYTES + 64 * 1024
};

static void
send_replies(struct conn *conn)
{
    struct buf *reply = &conn->loop->reply;
    enum mem_claim before = mem_set_claim(MEM_SERVE);

    if (reply->failed) { /* no memory for the reply */
        pending_flush_for(conn);
        conn_cut_no_memory(conn);
    }
    if (reply->len > 0) {
        push_send_for(conn); /* these pushes came before the reply */
    }
    if (reply->len > 0 && !conn_is_closing(conn)) {
        hold_send(conn, reply);
    }
    buf_reset(reply, REPLY_KEEP_BYTES);
    (void)mem_set_claim(before);
}

/* Ends the connection's turn if the loop's turn has lasted long enough and the
 * connection has more to do. */
static void
end_turn_in_time(struct conn *conn, bool more)
{
    if (more && !conn_must_wait(conn) &&
        clock_mono_ns() >= conn->loop->turn_ends_ns) {
        conn_resume_later(conn);
    }
}

/* Notes how much of the input is the command that parked, so that it can be
 * parsed again without the input behind it, which may be long. */
static void
measure_parked(struct conn *conn, uint32_t done, size_t used)
{
    const struct batch *batch = &conn->loop->batch;
    size_t end =
        done + 1 < batch->count ? batch->command[done + 1].begin : used;

    conn->parked_bytes = end - batch->command[done].begin;
}

/* Executes one parsed batch, which ends at `used` and has `behind` unparsed
 * bytes behind it. Returns how many bytes are done, from where stream_parse
 * began. */
static size_t
execute_batch(struct conn *conn, size_t used, size_t behind)
{
    struct loop *loop = conn->loop;
    uint32_t done = 0;

    loop->turn_open = true;
    loop->executing = conn;
    loop->behind_batch = behind;
    pending_flush_for(conn); /* no flush may close it while it executes */
    pending_flush_old(loop);
    while (done < loop->batch.count && !conn_must_wait(conn)) {
        done = loop->env->handler->execute(conn, &loop->batch, done);
        if (loop->reply.len >= LOOP_FLUSH_BYTES) {
            send_replies(conn);
            loop->now_ns = clock_mono_ns(); /* sending is no command's time */
        }
        end_turn_in_time(conn, done < loop->batch.count);
    }
    loop->executing = NULL;
    if (done > 0) {
        conn->active_ms = uv_now(&loop->uv);
        conn->ended_ms = 0;
        conn->request_seconds = 0;
    }
    if (done == loop->batch.count) {
        stream_done(&conn->input, loop->pool);
        return used;
    }
    if (conn->input.partial != NULL) { /* the stream keeps the command */
        return used;
    }
    if (conn_is_parked(conn)) {
        measure_parked(conn, done, used);
    }
    return loop->batch.command[done].begin;
}

/* Parses and executes until the data is used up or the connection has to wait.
 * Returns how many bytes are done. */
static size_t
serve(struct conn *conn, const char *data, size_t len)
{
    struct loop *loop = conn->loop;
    struct parse_error error;
    struct parse_limits limits;
    enum mem_claim before = mem_set_claim(MEM_FILL);
    size_t first = conn->parked_bytes;
    size_t at = 0;

    CHECK(first <= len);
    conn->parked_bytes = 0;
    /* Deliver pending invalidations before this reply, so that a client never
     * sees a reply older than a push about the same key. No reply is under way
     * here that a push could overtake. */
    mailbox_answer_poke(&loop->mailbox);
    loop->now_ns = clock_mono_ns();
    loop->turn_ends_ns = loop->now_ns + LOOP_TURN_US * (uint64_t)1000;
    loop->reply.limit =
        loop->env->limits->output[conn->output_class].hard_bytes;
    while (!conn_must_wait(conn)) {
        size_t used = 0;
        size_t end = at < first ? first : len;
        enum stream_result result;

        loop->env->handler->limits(conn, &limits);
        result = stream_parse(&conn->input, loop->pool, &limits, data + at,
                              end - at, &loop->batch, &used, &error);
        if (result == STREAM_MORE) {
            at = end;
            if (at < len) {
                continue;
            }
            break;
        }
        if (result == STREAM_ERROR) {
            loop->env->handler->protocol_error(conn, &error);
            conn_leave(conn);
            break;
        }
        at += execute_batch(conn, used, len - at - used);
        if (at == len && conn->input.partial == NULL) {
            break;
        }
        end_turn_in_time(conn, true);
    }
    send_replies(conn);
    (void)mem_set_claim(before);
    return at;
}

static void on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf);

static void
on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    struct conn *conn = handle->data;

    (void)suggested;
    /* Input that has to wait is kept; before the password, only a little. */
    *ret_buf =
        uv_buf_init(conn->loop->read_buffer,
                    conn->trusted ? LOOP_READ_BYTES : UNTRUSTED_READ_BYTES);
}

static void end_input(struct conn *conn, ssize_t status);

/* Starts or stops reading, or closes: the connection's state may have changed.
 */
static void
settle_conn(struct conn *conn)
{
    bool wait = conn_must_wait(conn);

    if (conn->state == CONN_LEAVING) {
        pending_flush_for(conn);
    }
    conn_count_input(conn);
    if (conn_is_closing(conn)) {
        return;
    }
    if (conn->state == CONN_LEAVING && conn->outbox == NULL &&
        conn->held_bytes == 0) {
        conn_close(conn);
    } else if (wait && conn->reading) {
        (void)uv_read_stop(&conn->uv.stream);
        conn->reading = false;
        conn->rested = true;
    } else if (!wait && conn->tls != NULL && tls_has_ended(conn->tls)) {
        end_input(conn, UV_EOF);
    } else if (!wait && !conn->reading) {
        conn->reading = uv_read_start(&conn->uv.stream, on_alloc, on_read) == 0;
        if (!conn->reading) {
            pending_close(conn);
        }
    }
}

/* Handles that the client sends no more: `status` is UV_EOF or an error. */
static void
end_input(struct conn *conn, ssize_t status)
{
    push_send_for(conn);
    pending_flush_for(conn);
    if (status == UV_EOF && (conn->held_bytes > 0 || conn->outbox != NULL)) {
        conn_leave(conn); /* the client may still read its replies */
        settle_conn(conn);
        return;
    }
    conn_close(conn);
}

/* Serves what was read. Input that has to wait is kept. */
static void
take_input(struct conn *conn, struct slice bytes, bool fills_buffer)
{
    size_t used = serve(conn, bytes.data, bytes.len);

    if (fills_buffer && !conn_must_wait(conn)) {
        /* A full buffer makes libuv read up to 32 times at once. */
        conn_resume_later(conn);
    }
    if (used < bytes.len && !conn_is_closing(conn)) {
        buf_append(&conn->kept, bytes.data + used, bytes.len - used);
        if (conn->kept.failed) {
            pending_close(conn);
        }
    }
    settle_conn(conn);
}

static void
cut_tls(struct conn *conn)
{
    metric_add(METRIC_TLS_FAILURES, 1);
    log_repeated(LOG_NOTICE, "net.conn", "cut, TLS failed",
                 "id=%llu reason=\"%s\"", (unsigned long long)conn_id(conn),
                 tls_reason(conn->tls));
    pending_close(conn);
}

/* Opens everything that was read before a part of it is executed, so that
 * received bytes are never in two places. The client's end (close_notify) takes
 * effect after the commands before it, in settle_conn(). */
static void
take_sealed(struct conn *conn, struct slice bytes, bool fills_buffer)
{
    struct loop *loop = conn->loop;
    enum tls_result result =
        tls_open(conn->tls, bytes, &loop->opened, &loop->sealed);

    outbox_send_sealed(conn);
    if (!conn_is_closing(conn)) {
        take_input(conn, buf_slice(&loop->opened), fills_buffer);
    }
    buf_reset(&loop->opened, OPENED_KEEP_BYTES);
    if (result == TLS_FAILED && !conn_is_closing(conn)) {
        cut_tls(conn);
    }
}

static void
on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct conn *conn = stream->data;
    struct slice bytes = { buf->base, nread > 0 ? (size_t)nread : 0 };
    bool fills_buffer = bytes.len == LOOP_READ_BYTES;

    CHECK(conn->magic == CONN_MAGIC);
    if (nread < 0) {
        end_input(conn, nread);
        return;
    }
    if (nread == 0) {
        return;
    }
    metric_add(METRIC_NET_INPUT, nread);
    metric_add(METRIC_READS, 1);
    if (conn->tls != NULL) {
        take_sealed(conn, bytes, fills_buffer);
    } else {
        take_input(conn, bytes, fills_buffer);
    }
}

/* Continues with the input that was kept while the connection waited. */
static void
serve_kept(struct conn *conn)
{
    size_t used = serve(conn, conn->kept.data, conn->kept.len);

    if (used == conn->kept.len) {
        buf_free(&conn->kept);
    } else if (used > 0 && !conn_is_closing(conn)) {
        buf_consume(&conn->kept, used);
    }
    settle_conn(conn);
}

/* Connections that do their work in pieces may be many. So after some of them
 * the loop looks for new input. */
void
serve_resume_all(struct loop *loop)
{
    uint64_t end_ns = clock_mono_ns() + LOOP_TURN_US * (uint64_t)1000;
    struct conn *conn;

    conn_begin_turns(loop);
    while ((conn = conn_next_turn(loop)) != NULL) {
        if (!conn_must_wait(conn)) {
            serve_kept(conn);
        } else {
            settle_conn(conn);
        }
        if (clock_mono_ns() >= end_ns) {
            return;
        }
    }
}

/* Returns whether there is input that is not in the batch being executed. */
static bool
has_unparsed(const struct conn *conn)
{
    if (conn->loop->executing == conn) {
        return conn->loop->behind_batch > 0;
    }
    return conn->kept.len > 0 || conn->input.partial != NULL;
}

/* The socket has two descriptors for a moment; closing one does not end the
 * connection, since libuv does not shut it down. */
int
serve_detach(struct conn *conn, struct tls **ret_tls)
{
    int fd;

    if (conn_must_wait(conn) || has_unparsed(conn)) {
        return -1;
    }
    if (conn->loop->executing == conn) {
        send_replies(conn); /* of earlier commands of the batch */
    }
    push_send_for(conn);
    pending_flush_for(conn);
    if (conn_is_closing(conn) || conn->outbox != NULL || conn->held_bytes > 0) {
        return -1;
    }
    fd = fcntl(conn->fd, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0) {
        *ret_tls = conn->tls;
        conn->tls = NULL; /* the end of conn is not the end of the socket */
        conn_close(conn);
    }
    return fd;
}

/* Makes the libuv handle of an accepted descriptor. If that fails, the caller
 * still owns the descriptor. */
static int
init_handle(struct conn *conn, int fd)
{
    uint64_t keepalive = conn->loop->env->limits->keepalive_seconds;
    int rc;

    if (conn->is_unix) {
        CHECK(uv_pipe_init(&conn->loop->uv, &conn->uv.pipe, 0) == 0);
        rc = uv_pipe_open(&conn->uv.pipe, fd);
    } else {
        CHECK(uv_tcp_init(&conn->loop->uv, &conn->uv.tcp) == 0);
        rc = uv_tcp_open(&conn->uv.tcp, fd);
    }
    conn->uv.handle.data = conn;
    if (rc == 0 && !conn->is_unix) {
        (void)uv_tcp_nodelay(&conn->uv.tcp, 1);
        (void)uv_tcp_keepalive(&conn->uv.tcp, keepalive > 0,
                               (unsigned)(keepalive > 0 ? keepalive : 1));
    }
    return rc;
}

/* Makes the owner of a new connection, which speaks TLS if that is asked for.
 * NULL: no memory, or the loop ends. */
static struct conn *
make_conn(struct loop *loop, unsigned how)
{
    struct conn *conn = NULL;
    struct tls *tls = NULL;

    if (loop->stopping) {
        return NULL;
    }
    if ((how & SERVE_TLS) != 0) {
        tls = tls_new_server(loop->env->tls);
    }
    if (tls != NULL || (how & SERVE_TLS) == 0) {
        conn = loop->env->handler->accept(loop);
    }
    if (conn == NULL) {
        tls_free(tls);
    } else {
        conn->tls = tls;
    }
    return conn;
}

void
serve_open(struct loop *loop, int fd, unsigned how)
{
    bool is_reserved = (how & SERVE_RESERVED) != 0;
    enum mem_claim before = mem_set_claim(is_reserved ? MEM_SERVE : MEM_OPEN);
    struct conn *conn = make_conn(loop, how);
    int rc;

    (void)mem_set_claim(before);
    if (conn == NULL) {
        registry_release(loop->env->registry,
                         is_reserved ? PLACE_RESERVED : PLACE_COMMON);
        (void)close(fd);
        return;
    }
    conn->magic = CONN_MAGIC;
    conn->loop = loop;
    conn->is_unix = (how & SERVE_UNIX) != 0;
    conn->is_reserved = is_reserved;
    conn->fd = fd;
    conn->active_ms = uv_now(&loop->uv);
    conn->rested = true; /* the first second is not a whole one */
    rc = init_handle(conn, fd);
    conn_join(conn);
    if (rc != 0) {
        (void)close(fd);
        conn_close(conn);
        return;
    }
    settle_conn(conn);
}

static void
kill_here(struct loop *loop, void *ptr, uint64_t id)
{
    struct conn *conn = conn_find(loop, id);

    (void)ptr;
    if (conn != NULL) {
        if (loop->env->handler->killed != NULL) {
            loop->env->handler->killed(conn);
        }
        pending_close(conn);
    }
}

bool
serve_kill(struct loop *loop, uint64_t id)
{
    return mailbox_post(&loop->mailbox, kill_here, NULL, id);
}
