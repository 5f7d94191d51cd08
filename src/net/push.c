/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list of the connections that have something. A connection that closes in
 * between stays in it until the flush: the end of its memory is a later
 * callback.
 */
#include "net/push.h"

#include "net/conn_internal.h"
#include "net/hold.h"
#include "net/outbox.h"

enum {
    CONN_BYTES = 64 * 1024,       /* of one: sent, since no write takes more */
    LOOP_BYTES = 4 * 1024 * 1024, /* of all: sent, however many they are */
};

/* Replies stop when too many are held, or were and are unsent now, since their
 * client is not read from then; pushes do not, so they end what cannot be
 * stopped. */
static void
send_pushed(struct conn *conn)
{
    uint64_t hard =
        conn->loop->env->limits->output[conn->output_class].hard_bytes;

    conn->loop->pushed_bytes -= conn->pushed.len;
    if (!conn->closing) {
        hold_send(conn, &conn->pushed);
    }
    conn->pushed.len = 0;
    if (!conn->closing && hard > 0) {
        size_t unsent = outbox_count(conn);
        size_t most = unsent > conn->held_bytes ? unsent : conn->held_bytes;

        if (most > hard) {
            outbox_cut(conn, most);
        }
    }
}

void
push_add(struct conn *conn, struct slice bytes, uint64_t hold_until)
{
    struct loop *loop = conn->loop;

    if (conn->closing || conn->close_after || bytes.len == 0) {
        return;
    }
    if (conn->hold_until < hold_until) {
        conn->hold_until = hold_until;
    }
    if (conn->pushed.data == NULL) {
        conn->next_pushed = loop->pushed;
        loop->pushed = conn;
    }
    buf_append_slice(&conn->pushed, bytes);
    if (conn->pushed.failed) {
        conn_cut_no_memory(conn);
        return;
    }
    loop->pushed_bytes += bytes.len;
    if (conn->pushed.len >= CONN_BYTES) {
        send_pushed(conn);
    }
    if (loop->pushed_bytes >= LOOP_BYTES) {
        push_flush(loop);
    }
}

void
push_flush(struct loop *loop)
{
    while (loop->pushed != NULL) {
        struct conn *conn = loop->pushed;

        loop->pushed = conn->next_pushed;
        if (conn->pushed.len > 0) {
            send_pushed(conn);
        }
        buf_free(&conn->pushed);
    }
}
