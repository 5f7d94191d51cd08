/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tries a direct write first. Only bytes that the socket did not accept need an
 * outbox.
 */
#include "net/outbox.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"

enum {
    LONG_BYTES = 1024 * 1024, /* no socket accepts so much at once */
    SEAL_BYTES = 128 * 1024,  /* bytes that TLS encrypts in one call: 50 us */
    SEALED_KEEP_BYTES = 256 * 1024
};

bool
outbox_is_overdue(struct conn *conn, uint64_t now_ms)
{
    uint64_t patience_ms = conn_output_limits(conn)->soft_seconds * 1000;

    (void)conn_count_output(conn);
    if (conn->outbox != NULL && conn->outbox->over_since_ms != 0) {
        return now_ms - conn->outbox->over_since_ms > patience_ms;
    }
    return conn->state == CONN_LEAVING && conn->held_bytes == 0 &&
           now_ms - conn->active_ms > patience_ms;
}

bool
outbox_moved(struct conn *conn)
{
    struct outbox *box = conn->outbox;
    size_t unsent = box != NULL ? conn_count_output(conn) : 0;
    /* The first look finds nothing to compare with. */
    bool moved =
        box != NULL && (box->unsent_before == 0 || unsent < box->unsent_before);

    if (box != NULL) {
        box->unsent_before = unsent;
    }
    return moved;
}

static void start_write(struct conn *conn);

static void
on_written(uv_write_t *write, int status)
{
    struct conn *conn = write->data;
    struct outbox *box = conn->outbox;

    CHECK(conn->magic == CONN_MAGIC && box != NULL);
    if (conn_is_closing(conn)) {
        return; /* the close callback frees the outbox */
    }
    if (status < 0) {
        conn_close(conn);
        return;
    }
    box->sending.len = 0;
    if (box->waiting.len > 0 || box->sealed.len > 0) {
        start_write(conn);
    } else {
        conn_free_outbox(conn);
    }
    conn_output_left(conn);
}

static void
start_write(struct conn *conn)
{
    struct outbox *box = conn->outbox;
    struct buf empty = box->sending;
    struct buf *next = conn->tls != NULL ? &box->sealed : &box->waiting;
    uv_buf_t part;

    CHECK(empty.len == 0);
    box->sending = *next;
    *next = empty;
    if (conn->tls != NULL &&
        !tls_seal_piece(conn->tls, &box->waiting, &box->waiting_at, SEAL_BYTES,
                        &box->sending)) {
        conn_close(conn);
        return;
    }
    box->write.data = conn;
    part = loop_uv_buf(buf_slice(&box->sending));
    metric_add(METRIC_WRITES, 1);
    metric_add(METRIC_NET_OUTPUT, (int64_t)box->sending.len);
    if (uv_write(&box->write, &conn->uv.stream, &part, 1, on_written) != 0) {
        conn_close(conn);
    }
    (void)conn_count_output(conn);
}

void
outbox_cut(struct conn *conn, size_t bytes)
{
    metric_add(METRIC_OUTPUT_LIMIT_CUTS, 1);
    log_repeated(LOG_WARN, "net.conn", "cut, too many replies left unread",
                 "id=%llu bytes=%zu", (unsigned long long)conn_id(conn), bytes);
    conn_close(conn);
}

/* Keeps `rest`, the end of `out`, for later, behind the records in
 * loop->sealed. Takes the whole buffer instead of a copy if it is long and
 * nothing is unsent. Cuts above `hard` unsent bytes; 0: no limit. */
static void
keep_rest(struct conn *conn, struct buf *out, struct slice rest, uint64_t hard)
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
    buf_append_slice(&conn->outbox->sealed, buf_slice(&conn->loop->sealed));
    if (idle && rest.len > LONG_BYTES) {
        conn->outbox->waiting_at = (size_t)(rest.data - out->data);
        buf_exchange(&conn->outbox->waiting, out);
    } else {
        buf_append_slice(&conn->outbox->waiting, rest);
    }
    unsent = conn_count_output(conn);
    if (conn->outbox->waiting.failed || conn->outbox->sealed.failed ||
        (hard > 0 && unsent > hard)) {
        outbox_cut(conn, unsent);
    } else if (idle) {
        start_write(conn);
    }
}

/* Writes what the socket takes at once; returns the rest. */
static struct slice
write_now(struct conn *conn, struct slice bytes)
{
    uv_buf_t part = loop_uv_buf(bytes);
    int written = uv_try_write(&conn->uv.stream, &part, 1);

    if (written < 0 && written != UV_EAGAIN) {
        conn_close(conn);
    } else if (written > 0) {
        metric_add(METRIC_WRITES, 1);
        metric_add(METRIC_NET_OUTPUT, written);
        bytes.data += written;
        bytes.len -= (size_t)written;
    }
    return bytes;
}

/* Writes what is in loop->sealed; what the socket does not take stays there. */
static void
write_sealed(struct conn *conn)
{
    struct buf *sealed = &conn->loop->sealed;
    struct slice rest = write_now(conn, buf_slice(sealed));

    buf_consume(sealed, sealed->len - rest.len);
}

/* Seals and writes piece by piece while the socket takes them whole; returns
 * the rest. */
static struct slice
seal_and_write(struct conn *conn, struct slice bytes)
{
    struct buf *sealed = &conn->loop->sealed;

    while (bytes.len > 0 && sealed->len == 0 && !conn_is_closing(conn)) {
        struct slice piece = bytes;

        if (piece.len > SEAL_BYTES) {
            piece.len = SEAL_BYTES;
        }
        bytes.data += piece.len;
        bytes.len -= piece.len;
        if (tls_seal(conn->tls, piece, sealed)) {
            write_sealed(conn);
        } else {
            conn_close(conn);
        }
    }
    return bytes;
}

static void
send_or_keep(struct conn *conn, struct buf *out, uint64_t hard)
{
    struct buf *sealed = &conn->loop->sealed;
    struct slice rest = buf_slice(out);

    if (!conn_is_closing(conn) && conn->outbox == NULL) {
        if (conn->tls != NULL) {
            rest = seal_and_write(conn, rest);
        } else if (rest.len <= LONG_BYTES) {
            rest = write_now(conn, rest);
        }
    }
    if (!conn_is_closing(conn) && rest.len + sealed->len > 0) {
        keep_rest(conn, out, rest, hard);
    }
    if (conn->tls != NULL) {
        buf_reset(sealed, SEALED_KEEP_BYTES);
    }
    out->len = 0;
}

void
outbox_send_sealed(struct conn *conn)
{
    struct buf none = { 0 };
    struct buf *sealed = &conn->loop->sealed;

    if (sealed->len > 0 && !conn_is_closing(conn) && conn->outbox == NULL) {
        write_sealed(conn);
    }
    if (sealed->len > 0 && !conn_is_closing(conn)) {
        keep_rest(conn, &none, buf_slice(&none), conn_hard_limit(conn));
    }
    buf_reset(sealed, SEALED_KEEP_BYTES);
}

void
outbox_send(struct conn *conn, struct buf *out)
{
    send_or_keep(conn, out, conn_hard_limit(conn));
}

void
outbox_send_held(struct conn *conn, struct buf *out)
{
    send_or_keep(conn, out, 0);
}
