/* SPDX-License-Identifier: BSD-3-Clause
 *
 * First a direct write; only a remainder gets an outbox.
 */
#include "net/outbox.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "net/conn_internal.h"
#include "net/usage.h"

enum {
    /* A client that has not authenticated may leave this much unread. */
    UNTRUSTED_BYTES = 1024,
    /* What is held has a bound whatever the options say. */
    HELD_BYTES = 16 * 1024 * 1024,
    /* No socket takes so much at once. */
    LONG_BYTES = 1024 * 1024,
};

struct outbox {
    uv_write_t write;
    struct buf sending, waiting;
    uint64_t over_since_ms; /* 0: not over the soft limit */
    size_t unsent_before;   /* when outbox_moved looked last */
};

static const struct output_limits *
limits_of(const struct conn *conn)
{
    return &conn->loop->env->limits->output[conn->output_class];
}

/* 0: none. */
static uint64_t
hard_limit(const struct conn *conn)
{
    uint64_t hard = limits_of(conn)->hard_bytes;

    return conn->trusted || (hard > 0 && hard < UNTRUSTED_BYTES)
               ? hard
               : UNTRUSTED_BYTES;
}

/* Beyond which a client with held output has to wait. To wait costs it nothing
 * that it has not lost already, so there is always a limit; and when all goes
 * out at once it shall not be close to the hard one. */
static uint64_t
held_limit(const struct conn *conn)
{
    uint64_t hard = hard_limit(conn);
    uint64_t soft = limits_of(conn)->soft_bytes;
    uint64_t limit = HELD_BYTES;

    if (hard > 0 && limit > hard / 2) {
        limit = hard / 2;
    }
    return soft > 0 && soft < limit ? soft : limit;
}

/* The count that others read stops at 4 GiB. */
size_t
outbox_count(struct conn *conn)
{
    struct outbox *box = conn->outbox;
    size_t unsent = box != NULL
                        ? uv_stream_get_write_queue_size(&conn->uv.stream) +
                              box->waiting.len
                        : 0;
    size_t all = unsent + conn->held_bytes;
    uint32_t bytes = all < UINT32_MAX ? (uint32_t)all : UINT32_MAX;
    uint32_t before =
        atomic_load_explicit(&conn->output_bytes, memory_order_relaxed);
    uint64_t soft = limits_of(conn)->soft_bytes;
    uint64_t hard = hard_limit(conn);

    if (bytes != before) {
        metric_add(METRIC_CLIENT_OUTPUT_BYTES, (int64_t)bytes - before);
        atomic_store_explicit(&conn->output_bytes, bytes, memory_order_relaxed);
        usage_count(conn);
    }
    if (box != NULL && (soft == 0 || unsent <= soft)) {
        box->over_since_ms = 0;
    } else if (box != NULL && box->over_since_ms == 0) {
        box->over_since_ms = uv_now(&conn->loop->uv);
    }
    /* Only what was held and came together can be above the hard limit. */
    conn->full =
        conn->held_bytes > held_limit(conn) || (hard > 0 && unsent > hard);
    return unsent;
}

size_t
outbox_memory_bytes(const struct conn *conn)
{
    const struct outbox *box = conn->outbox;

    return box != NULL
               ? sizeof(*box) + box->sending.capacity + box->waiting.capacity
               : 0;
}

bool
outbox_is_overdue(struct conn *conn, uint64_t now_ms)
{
    uint64_t patience_ms = limits_of(conn)->soft_seconds * 1000;

    (void)outbox_count(conn);
    if (conn->outbox != NULL && conn->outbox->over_since_ms != 0) {
        return now_ms - conn->outbox->over_since_ms > patience_ms;
    }
    return conn->close_after && conn->held_bytes == 0 &&
           now_ms - conn->active_ms > patience_ms;
}

bool
outbox_moved(struct conn *conn)
{
    struct outbox *box = conn->outbox;
    size_t unsent = box != NULL ? outbox_count(conn) : 0;
    bool moved = box != NULL && unsent < box->unsent_before;

    if (box != NULL) {
        box->unsent_before = unsent;
    }
    return moved;
}

void
outbox_free(struct conn *conn)
{
    if (conn->outbox != NULL) {
        buf_free(&conn->outbox->sending);
        buf_free(&conn->outbox->waiting);
        mem_free(conn->outbox);
        conn->outbox = NULL;
        (void)outbox_count(conn);
    }
}

/* uv_buf_init takes an unsigned int, and replies may be longer. libuv does not
 * write through the pointer. */
static uv_buf_t
buffer_of(struct slice bytes)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): only casts const away */
    return (uv_buf_t){ .base = (char *)(uintptr_t)bytes.data,
                       .len = bytes.len };
}

static void start_write(struct conn *conn);

static void
on_written(uv_write_t *write, int status)
{
    struct conn *conn = write->data;
    struct outbox *box = conn->outbox;

    CHECK(conn->magic == CONN_MAGIC);
    if (conn->closing) {
        return; /* the close callback frees the outbox */
    }
    if (status < 0) {
        conn_close(conn);
        return;
    }
    box->sending.len = 0;
    if (box->waiting.len > 0) {
        start_write(conn);
        (void)outbox_count(conn);
    } else {
        outbox_free(conn);
    }
    conn_sent(conn);
}

static void
start_write(struct conn *conn)
{
    struct outbox *box = conn->outbox;
    struct buf free_again = box->sending;
    uv_buf_t part;

    box->sending = box->waiting;
    box->waiting = free_again;
    box->write.data = conn;
    part = buffer_of(buf_slice(&box->sending));
    metric_add(METRIC_WRITES, 1);
    metric_add(METRIC_NET_OUTPUT, (int64_t)box->sending.len);
    if (uv_write(&box->write, &conn->uv.stream, &part, 1, on_written) != 0) {
        conn_close(conn);
    }
}

void
outbox_cut(struct conn *conn, size_t bytes)
{
    metric_add(METRIC_OUTPUT_LIMIT_CUTS, 1);
    log_repeated(LOG_WARN, "net.conn", "cut, too many replies left unread",
                 "id=%llu bytes=%zu", (unsigned long long)conn->id, bytes);
    conn_close(conn);
}

/* Keeps what the socket did not take; cuts above hard, unless that is 0. */
static void
keep(struct conn *conn, struct slice rest, uint64_t hard)
{
    bool idle = conn->outbox == NULL;
    size_t unsent;

    if (idle) {
        conn->outbox = mem_try_zalloc(sizeof(*conn->outbox));
        if (conn->outbox == NULL) {
            conn_close(conn);
            return;
        }
    }
    buf_append_slice(&conn->outbox->waiting, rest);
    unsent = outbox_count(conn);
    if (conn->outbox->waiting.failed || (hard > 0 && unsent > hard)) {
        outbox_cut(conn, unsent);
    } else if (idle) {
        start_write(conn);
        (void)outbox_count(conn);
    }
}

/* What is long would mostly have to be copied into the outbox: it is taken over
 * as it is, and written from there. */
static void
keep_long(struct conn *conn, struct buf *out, uint64_t hard)
{
    size_t unsent;

    conn->outbox = mem_try_zalloc(sizeof(*conn->outbox));
    if (conn->outbox == NULL) {
        conn_close(conn);
        out->len = 0;
        return;
    }
    buf_exchange(&conn->outbox->waiting, out);
    unsent = outbox_count(conn);
    if (hard > 0 && unsent > hard) {
        outbox_cut(conn, unsent);
        return;
    }
    start_write(conn);
    (void)outbox_count(conn);
}

static void
send_or_keep(struct conn *conn, struct buf *out, uint64_t hard)
{
    struct slice rest = buf_slice(out);

    if (conn->closing) {
        out->len = 0;
        return;
    }
    if (conn->outbox == NULL && rest.len > LONG_BYTES) {
        keep_long(conn, out, hard);
        return;
    }
    if (conn->outbox == NULL) {
        uv_buf_t part = buffer_of(rest);
        int written = uv_try_write(&conn->uv.stream, &part, 1);

        if (written < 0 && written != UV_EAGAIN) {
            conn_close(conn);
            out->len = 0;
            return;
        }
        if (written > 0) {
            metric_add(METRIC_WRITES, 1);
            metric_add(METRIC_NET_OUTPUT, written);
            rest.data += written;
            rest.len -= (size_t)written;
        }
    }
    if (rest.len > 0) {
        keep(conn, rest, hard);
    }
    out->len = 0;
}

void
outbox_send(struct conn *conn, struct buf *out)
{
    send_or_keep(conn, out, hard_limit(conn));
}

void
outbox_send_held(struct conn *conn, struct buf *out)
{
    send_or_keep(conn, out, 0);
}
