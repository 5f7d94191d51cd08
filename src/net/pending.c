/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list of connections, each with one piece of the buffer. A second piece of a
 * connection flushes all of them first, which is rare.
 */
#include "net/pending.h"

#include "net/outbox.h"

enum {
    ONE_BYTES = 8 * 1024,  /* of a connection; longer replies are not copied */
    ALL_BYTES = 64 * 1024, /* of all connections of the loop */
    OLD_US = 200
};

/* Returns false without memory. */
static bool
add_bytes(struct conn *conn, struct slice bytes)
{
    struct pending *pending = &conn->loop->pending;
    uint32_t at = (uint32_t)pending->replies.len;

    buf_append_slice(&pending->replies, bytes);
    if (pending->replies.failed) {
        pending->replies.failed = false;
        return false;
    }
    if (pending->first == NULL) {
        pending->first = conn;
        pending->since_ns = conn->loop->now_ns;
    } else {
        pending->last->next_pending = conn;
    }
    pending->last = conn;
    conn->next_pending = NULL;
    conn->pending_at = at;
    conn->pending_bytes = (uint32_t)bytes.len;
    return true;
}

void
pending_send(struct conn *conn, struct buf *out)
{
    struct loop *loop = conn->loop;

    pending_flush_for(conn);
    if (loop->pending.replies.len + out->len > ALL_BYTES) {
        pending_flush(loop);
    }
    if (conn_is_closing(conn) || conn->outbox != NULL || out->len == 0 ||
        out->len > ONE_BYTES || !add_bytes(conn, buf_slice(out))) {
        outbox_send(conn, out);
    }
    out->len = 0;
}

static void
send_one(struct conn *conn)
{
    struct buf *replies = &conn->loop->pending.replies;
    struct buf piece = { .data = replies->data + conn->pending_at,
                         .len = conn->pending_bytes };

    conn->pending_bytes = 0;
    outbox_send(conn, &piece); /* copies such a short piece */
}

void
pending_flush(struct loop *loop)
{
    struct pending *pending = &loop->pending;

    while (pending->first != NULL) {
        struct conn *conn = pending->first;

        pending->first = conn->next_pending;
        send_one(conn);
    }
    pending->replies.len = 0;
}

void
pending_flush_for(struct conn *conn)
{
    if (conn->pending_bytes > 0) {
        pending_flush(conn->loop);
    }
}

void
pending_close(struct conn *conn)
{
    pending_flush_for(conn);
    conn_close(conn);
}

void
pending_flush_old(struct loop *loop)
{
    const struct pending *pending = &loop->pending;

    if (pending->first != NULL &&
        loop->now_ns - pending->since_ns > OLD_US * (uint64_t)1000) {
        pending_flush(loop);
    }
}
