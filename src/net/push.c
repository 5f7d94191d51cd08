/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list of the connections that have pushes. The writes to their sockets cost
 * most, so a flush looks at the clock between them.
 */
#include "net/push.h"

#include "base/clock.h"
#include "net/hold.h"
#include "net/outbox.h"
#include "net/pending.h"

enum {
    CONN_BYTES = 64 * 1024,       /* of one connection; then they are sent */
    LOOP_BYTES = 4 * 1024 * 1024, /* of all connections; then the oldest are
                                     sent */
    AT_ONCE = 16                  /* writes between two looks at the clock */
};

/* Replies have a bound, since a client with too many held or unsent ones is not
 * read from. Pushes go on, so a client that has too many is cut. */
static void
send_pushed(struct conn *conn)
{
    uint64_t hard =
        conn->loop->env->limits->output[conn->output_class].hard_bytes;
    struct buf bytes = conn->pushed;

    conn->pushed = (struct buf){ 0 };
    conn->loop->pushed_bytes -= bytes.len;
    conn_leave_pushed(conn);
    hold_send(conn, &bytes);
    buf_free(&bytes);
    if (!conn_is_closing(conn) && hard > 0) {
        size_t unsent = conn_count_output(conn);
        size_t most = unsent > conn->held_bytes ? unsent : conn->held_bytes;

        if (most > hard) {
            pending_flush_for(conn);
            outbox_cut(conn, most);
        }
    }
}

static void
join_list(struct conn *conn)
{
    struct loop *loop = conn->loop;

    conn->next_pushed = NULL;
    conn->pushed_at = loop->pushed_end;
    *loop->pushed_end = conn;
    loop->pushed_end = &conn->next_pushed;
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
    if (conn->pushed_at == NULL) {
        join_list(conn);
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
    } else if (loop->pushed_bytes >= LOOP_BYTES) {
        send_pushed(loop->pushed);
        pending_flush(loop);
    }
}

void
push_send_now(struct conn *conn)
{
    send_pushed(conn);
}

bool
push_flush(struct loop *loop, uint64_t until_ns)
{
    for (unsigned done = 1; loop->pushed != NULL; done++) {
        send_pushed(loop->pushed);
        if (done % AT_ONCE == 0) {
            pending_flush(loop);
            if (clock_mono_ns() >= until_ns) {
                return loop->pushed == NULL;
            }
        }
    }
    return true;
}
