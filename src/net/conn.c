/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading, executing, resuming, parking, closing. Sending is in hold.c and
 * outbox.c. The read and reply buffers are the loop's: nothing here keeps a
 * pointer into them past the callback; what must wait is copied to conn->kept.
 */
#include "net/conn.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "net/conn_internal.h"
#include "net/hold.h"
#include "net/outbox.h"
#include "net/pending.h"
#include "net/registry.h"
#include "net/usage.h"

#include <fcntl.h>
#include <unistd.h>

enum { REPLY_KEEP_BYTES = 1024 * 1024, UNTRUSTED_READ_BYTES = 1024 };

static void
list_add(struct conn_list *list, struct conn *conn)
{
    conn->next = NULL;
    conn->prev = list->last;
    if (list->last != NULL) {
        list->last->next = conn;
    } else {
        list->first = conn;
    }
    list->last = conn;
}

static void
list_remove(struct conn_list *list, struct conn *conn)
{
    if (conn->prev != NULL) {
        conn->prev->next = conn->next;
    } else {
        list->first = conn->next;
    }
    if (conn->next != NULL) {
        conn->next->prev = conn->prev;
    } else {
        list->last = conn->prev;
    }
}

static bool
must_wait(const struct conn *conn)
{
    return conn->closing || conn->close_after || conn->resume_queued ||
           conn->parked || conn->full;
}

static void
count_input(struct conn *conn)
{
    size_t kept = conn->kept.len + stream_kept_bytes(&conn->input);
    uint32_t bytes = kept < UINT32_MAX ? (uint32_t)kept : UINT32_MAX;
    uint32_t before =
        atomic_load_explicit(&conn->input_bytes, memory_order_relaxed);

    if (bytes != before) {
        metric_add(METRIC_CLIENT_INPUT_BYTES, (int64_t)bytes - before);
        atomic_store_explicit(&conn->input_bytes, bytes, memory_order_relaxed);
        usage_count(conn);
    }
}

void
conn_cut_no_memory(struct conn *conn)
{
    log_repeated(LOG_WARN, "net.conn", "cut, no memory for its reply",
                 "id=%llu", (unsigned long long)conn->id);
    conn_close(conn);
}

static void
send_replies(struct conn *conn)
{
    struct buf *reply = &conn->loop->reply;
    enum mem_claim before = mem_set_claim(MEM_SERVE);

    if (reply->failed) { /* no memory for the reply: nothing true to say */
        conn_cut_no_memory(conn);
    }
    if (reply->len > 0 && !conn->closing) {
        hold_send(conn, reply);
    }
    buf_reset(reply, REPLY_KEEP_BYTES);
    (void)mem_set_claim(before);
}

/* More is to be done, and others wait: they come first. */
static void
end_turn_in_time(struct conn *conn, bool more)
{
    if (more && !must_wait(conn) &&
        clock_mono_ns() >= conn->loop->turn_ends_ns) {
        conn_resume_later(conn);
    }
}

/* How much of the input is the command that parked, so that it can be called
 * again without a look at what follows it: that may be a lot. */
static void
measure_parked(struct conn *conn, uint32_t done, size_t used)
{
    const struct batch *batch = &conn->loop->batch;
    size_t end =
        done + 1 < batch->count ? batch->command[done + 1].begin : used;

    conn->parked_bytes = end - batch->command[done].begin;
}

/* Executes one parsed batch, behind which so many bytes have come. Returns how
 * far data is dealt with, counted from the data that stream_parse was given. */
static size_t
execute_batch(struct conn *conn, size_t used, size_t behind)
{
    struct loop *loop = conn->loop;
    uint32_t done = 0;

    loop->turn_open = true;
    loop->executing = conn;
    loop->behind_batch = behind;
    conn->wait = CONN_RUNS;
    pending_flush_for(conn); /* so that no flush ends it while it executes */
    pending_flush_old(loop);
    while (done < loop->batch.count && !must_wait(conn)) {
        done = loop->env->handler->execute(conn, &loop->batch, done);
        if (loop->reply.len >= LOOP_FLUSH_BYTES) {
            send_replies(conn);
            loop->now_ns = clock_mono_ns(); /* no command took that long */
        }
        end_turn_in_time(conn, done < loop->batch.count);
    }
    loop->executing = NULL;
    if (done > 0) { /* it gets on */
        conn->active_ms = uv_now(&loop->uv);
        conn->ended_ms = 0;
        conn->request_seconds = 0;
    }
    if (done == loop->batch.count) {
        stream_done(&conn->input, loop->pool);
        return used;
    }
    if (conn->input.partial != NULL) { /* the reader keeps the command */
        return used;
    }
    if (conn->parked) {
        measure_parked(conn, done, used);
    }
    return loop->batch.command[done].begin;
}

/* Parses and executes until the data is used up or the connection has to
 * wait. Returns how many bytes are dealt with. */
static size_t
run(struct conn *conn, const char *data, size_t len)
{
    struct loop *loop = conn->loop;
    struct parse_error error;
    struct parse_limits limits;
    enum mem_claim before = mem_set_claim(MEM_FILL);
    size_t first = conn->parked_bytes;
    size_t at = 0;

    CHECK(first <= len);
    conn->parked_bytes = 0;
    /* Who learnt from somebody's reply that a thing was done, and asks now,
     * hears of that thing before he is answered. No reply is under way here
     * that a push could overtake. */
    mailbox_answer_poke(&loop->mailbox);
    loop->now_ns = clock_mono_ns();
    loop->turn_ends_ns = loop->now_ns + LOOP_TURN_US * (uint64_t)1000;
    loop->reply.limit =
        loop->env->limits->output[conn->output_class].hard_bytes;
    while (!must_wait(conn)) {
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
            conn->close_after = true;
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
    /* What has to wait is kept, and that shall be little before the password.
     */
    *ret_buf =
        uv_buf_init(conn->loop->read_buffer,
                    conn->trusted ? LOOP_READ_BYTES : UNTRUSTED_READ_BYTES);
}

void
conn_settle(struct conn *conn)
{
    bool wait = must_wait(conn);

    if (conn->close_after) {
        pending_flush_for(conn);
    }
    count_input(conn);
    if (conn->closing) {
        return;
    }
    if (conn->close_after && conn->outbox == NULL && conn->held_bytes == 0) {
        conn_close(conn);
    } else if (wait && conn->reading) {
        (void)uv_read_stop(&conn->uv.stream);
        conn->reading = false;
        conn->rested = true;
    } else if (!wait && !conn->reading) {
        conn->reading = uv_read_start(&conn->uv.stream, on_alloc, on_read) == 0;
        if (!conn->reading) {
            conn_close(conn);
        }
    }
}

static void
on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct conn *conn = stream->data;
    size_t len = nread > 0 ? (size_t)nread : 0;
    size_t used;

    CHECK(conn->magic == CONN_MAGIC);
    if (nread < 0) {
        pending_flush_for(conn);
    }
    if (nread == UV_EOF && (conn->held_bytes > 0 || conn->outbox != NULL)) {
        conn->close_after = true; /* it may still read what it is owed */
        conn_settle(conn);
        return;
    }
    if (nread < 0) {
        conn_close(conn);
        return;
    }
    if (len == 0) {
        return;
    }
    metric_add(METRIC_NET_INPUT, (int64_t)len);
    metric_add(METRIC_READS, 1);
    used = run(conn, buf->base, len);
    if (len == LOOP_READ_BYTES && !must_wait(conn)) {
        /* A full buffer makes libuv read up to 32 times at once. */
        conn_resume_later(conn);
    }
    if (used < len && !conn->closing) {
        buf_append(&conn->kept, buf->base + used, len - used);
        if (conn->kept.failed) {
            conn_close(conn);
        }
    }
    conn_settle(conn);
}

/* Goes on with what was kept when the connection had to wait. */
static void
run_kept(struct conn *conn)
{
    size_t used = run(conn, conn->kept.data, conn->kept.len);

    if (used == conn->kept.len) {
        buf_free(&conn->kept);
    } else if (used > 0 && !conn->closing) {
        buf_consume(&conn->kept, used);
    }
    conn_settle(conn);
}

void
conn_sent(struct conn *conn)
{
    conn->active_ms = uv_now(&conn->loop->uv);
    if (!conn->closing && !must_wait(conn) && !conn->reading) {
        run_kept(conn);
    } else {
        conn_settle(conn);
    }
}

void
conn_resume_later(struct conn *conn)
{
    struct loop *loop = conn->loop;

    CHECK(!conn->resume_queued);
    if (conn->closing) {
        return; /* its end does not look at the list again */
    }
    conn->resume_queued = true;
    conn->next_resumable = loop->resumable;
    loop->resumable = conn;
    loop_resume_soon(loop);
}

void
conn_resume_all(struct loop *loop)
{
    struct conn *conn = loop->resumable;

    loop->resumable = NULL;
    while (conn != NULL) {
        struct conn *next = conn->next_resumable;

        conn->resume_queued = false;
        if (!must_wait(conn)) {
            run_kept(conn);
        } else {
            conn_settle(conn);
        }
        conn = next;
    }
}

void
conn_released(struct conn *conn)
{
    if (!conn->closing && !conn->reading && !conn->resume_queued &&
        !conn->parked) {
        conn_resume_later(conn);
    }
}

static void
park(struct conn *conn, struct conn **list, enum conn_wait wait)
{
    struct loop *loop = conn->loop;

    CHECK(!conn->resume_queued && !conn->parked);
    if (conn->closing) {
        return; /* its end does not look at the list again */
    }
    conn->parked = true;
    conn->wait = wait;
    conn->next_parked = *list;
    conn->parked_at = list;
    if (*list != NULL) {
        (*list)->parked_at = &conn->next_parked;
    }
    *list = conn;
    metric_add(METRIC_BLOCKED_CLIENTS, 1);
    loop_expect_wake(loop);
    loop_tick_soon(loop);
}

void
conn_park(struct conn *conn)
{
    park(conn, &conn->loop->parked, CONN_FOR_EVENT);
}

void
conn_park_for(struct conn *conn, uint32_t ms)
{
    conn_park(conn);
    conn->parked_until = (uint32_t)uv_now(&conn->loop->uv) + ms;
    if (conn->parked_until == 0) {
        conn->parked_until = 1;
    }
}

void
conn_park_for_room(struct conn *conn)
{
    park(conn, &conn->loop->parked_for_room, CONN_FOR_ROOM);
}

static void
unpark(struct conn *conn)
{
    *conn->parked_at = conn->next_parked;
    if (conn->next_parked != NULL) {
        conn->next_parked->parked_at = conn->parked_at;
    }
    conn->parked = false;
    conn->parked_until = 0;
    metric_add(METRIC_BLOCKED_CLIENTS, -1);
}

/* The bits that are compared wrap in 49 days; no wait is as long. */
static bool
waits_for_time(const struct conn *conn)
{
    uint32_t now = (uint32_t)uv_now(&conn->loop->uv);

    return conn->parked_until != 0 && (int32_t)(conn->parked_until - now) > 0;
}

static void
unpark_list(struct conn **list)
{
    while (*list != NULL) {
        struct conn *conn = *list;

        if (waits_for_time(conn)) {
            list = &conn->next_parked;
            continue;
        }
        unpark(conn);
        conn_resume_later(conn);
    }
}

void
conn_unpark_all(struct loop *loop)
{
    const struct conn_handler *handler = loop->env->handler;

    unpark_list(&loop->parked);
    if (loop->parked_for_room != NULL &&
        (handler->has_room == NULL || handler->has_room(loop))) {
        unpark_list(&loop->parked_for_room);
    }
}

void
conn_unpark_for_room(struct loop *loop)
{
    unpark_list(&loop->parked_for_room);
}

static void
forget_resumable(struct conn *conn)
{
    struct conn **at = &conn->loop->resumable;

    while (conn->resume_queued && *at != NULL) {
        if (*at == conn) {
            *at = conn->next_resumable;
            conn->resume_queued = false;
        } else {
            at = &(*at)->next_resumable;
        }
    }
}

static void
on_closed(uv_handle_t *handle)
{
    struct conn *conn = handle->data;
    struct loop *loop = conn->loop;

    CHECK(conn->magic == CONN_MAGIC && conn->pushed.len == 0 &&
          conn->pending_bytes == 0);
    conn->magic = 0;
    outbox_free(conn);
    hold_free(conn);
    buf_free(&conn->kept);
    loop->open_conns--;
    registry_release(loop->env->registry,
                     conn->is_reserved ? PLACE_RESERVED : PLACE_COMMON);
    loop->env->handler->closed(conn);
}

void
conn_close(struct conn *conn)
{
    pending_flush_for(conn); /* if the socket is no more, it closes there */
    if (conn->closing) {
        return;
    }
    forget_resumable(conn);
    if (conn->parked) {
        unpark(conn);
    }
    hold_drop(conn);
    conn->closing = true;
    list_remove(&conn->loop->conns, conn);
    registry_remove(conn->loop->env->registry, conn);
    usage_leave(conn);
    stream_fini(&conn->input, conn->loop->pool);
    conn->kept.len = 0;
    count_input(conn);
    metric_add(METRIC_CONNECTED_CLIENTS, -1);
    uv_close(&conn->uv.handle, on_closed);
}

/* Whether more has come than the batch in hand, if there is one. */
static bool
has_unparsed(const struct conn *conn)
{
    if (conn->loop->executing == conn) {
        return conn->loop->behind_batch > 0;
    }
    return conn->kept.len > 0 || conn->input.partial != NULL;
}

/* Of two descriptors of one socket the close of one is no end of it, and libuv
 * shuts nothing down; it also takes the closed one out of epoll. */
int
conn_detach(struct conn *conn)
{
    int fd;

    if (must_wait(conn) || has_unparsed(conn)) {
        return -1;
    }
    if (conn->loop->executing == conn) {
        send_replies(conn); /* of what came before it in the batch */
    }
    pending_flush_for(conn);
    if (conn->closing || conn->outbox != NULL || conn->held_bytes > 0 ||
        conn->pushed.len > 0) {
        return -1;
    }
    fd = fcntl(conn->fd, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0) {
        conn_close(conn);
    }
    return fd;
}

/* Makes the libuv handle of an accepted descriptor; -1 leaves none behind. */
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

void
conn_open(struct loop *loop, int fd, unsigned how)
{
    bool is_reserved = (how & CONN_RESERVED) != 0;
    enum mem_claim before = mem_set_claim(is_reserved ? MEM_SERVE : MEM_OPEN);
    struct conn *conn =
        loop->stopping ? NULL : loop->env->handler->accept(loop);
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
    conn->is_unix = (how & CONN_UNIX) != 0;
    conn->is_reserved = is_reserved;
    conn->fd = fd;
    conn->active_ms = uv_now(&loop->uv);
    rc = init_handle(conn, fd);
    list_add(&loop->conns, conn);
    registry_add(loop->env->registry, conn);
    usage_count(conn);
    loop->open_conns++;
    metric_add(METRIC_CONNECTED_CLIENTS, 1);
    metric_add(METRIC_CONNECTIONS, 1);
    if (rc != 0) {
        (void)close(fd);
        conn_close(conn);
        return;
    }
    conn_settle(conn);
}

struct conn *
conn_find(struct loop *loop, uint64_t id)
{
    struct conn *conn = loop->conns.first;

    while (conn != NULL && conn->id != id) {
        conn = conn->next;
    }
    return conn;
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
        conn_close(conn);
    }
}

bool
conn_kill(struct loop *loop, uint64_t id)
{
    return mailbox_post(&loop->mailbox, kill_here, NULL, id);
}

void
conn_peer_address(const struct conn *conn, char *ret_text)
{
    address_peer(conn->fd, conn->is_unix, ret_text);
}

void
conn_local_address(const struct conn *conn, char *ret_text)
{
    address_local(conn->fd, conn->is_unix, ret_text);
}
