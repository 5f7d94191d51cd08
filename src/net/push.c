/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list of the connections that have pushes. A connection that closes stays in
 * it until the flush: its memory is freed in a later callback.
 */
#include "net/push.h"

#include "net/hold.h"
#include "net/outbox.h"
#include "net/pending.h"

enum {
    CONN_BYTES = 64 * 1024,       /* of one connection, then they are sent */
    LOOP_BYTES = 4 * 1024 * 1024, /* of all connections of the loop */
    LOOP_CONNS =
        512 /* are sent now, so that whoever delivers counts the time */
};

/* Replies have a bound, since a client with too many held or unsent ones is not
 * read from. Pushes go on, so a client that has too many is cut. */
static void
send_pushed(struct conn *conn)
{
    uint64_t hard =
        conn->loop->env->limits->output[conn->output_class].hard_bytes;

    conn->loop->pushed_bytes -= conn->pushed.len;
    if (!conn_is_closing(conn)) {
        hold_send(conn, &conn->pushed);
    }
    conn->pushed.len = 0;
    if (!conn_is_closing(conn) && hard > 0) {
        size_t unsent = conn_count_output(conn);
        size_t most = unsent > conn->held_bytes ? unsent : conn->held_bytes;

        if (most > hard) {
            pending_flush_for(conn);
            outbox_cut(conn, most);
        }
    }
}

void
push_add(struct conn *conn, struct slice bytes, uint64_t hold_until)
{
    struct loop *loop = conn->loop;

    if (conn->state != CONN_OPEN || bytes.len == 0) {
        return;
    }
    if (conn->hold_until < hold_until) {
        conn->hold_until = hold_until;
    }
    if (conn->pushed.data == NULL) {
        conn->next_pushed = loop->pushed;
        loop->pushed = conn;
        loop->pushed_conns++;
    }
    buf_append_slice(&conn->pushed, bytes);
    if (conn->pushed.failed) {
        pending_flush_for(conn);
        conn_cut_no_memory(conn);
        return;
    }
    loop->pushed_bytes += bytes.len;
    if (conn->pushed.len >= CONN_BYTES) {
        send_pushed(conn);
    }
    if (loop->pushed_bytes >= LOOP_BYTES) {
        push_flush(loop);
    } else if (loop->pushed_conns >= LOOP_CONNS) {
        push_flush(loop);
        pending_flush(loop);
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
    loop->pushed_conns = 0;
}
