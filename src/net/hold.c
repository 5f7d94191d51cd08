/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two segments, each with the position that it waits for: the first, whose
 * position is fixed, and the rest, which gathers what comes meanwhile and whose
 * position rises. When the first is released, it is sent and the rest takes its
 * place. So a client that never stops gets its replies one or two releases
 * later, and the cost does not grow with the number of its commands.
 */
#include "net/hold.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "net/outbox.h"
#include "net/pending.h"

enum {
    KEEP_BYTES = 1024, /* memory that an empty segment keeps */
    LONG_BYTES = 1024 * 1024,
    JOIN_BYTES = 128 * 1024, /* copying so much is cheaper than another write */
};

static void
list_add(struct loop *loop, struct conn *conn)
{
    conn->hold->next = NULL;
    conn->hold->at = loop->held_end;
    *loop->held_end = conn;
    loop->held_end = &conn->hold->next;
    metric_add(METRIC_HELD_CLIENTS, 1);
}

static void
count_held(struct conn *conn)
{
    conn->held_bytes = conn->hold->first.bytes.len + conn->hold->rest.bytes.len;
    (void)conn_count_output(conn);
}

/* ---- sending ------------------------------------------------------------- */

static void
send_instead(struct conn *conn, struct slice held)
{
    struct buf replies = { 0 };

    conn->loop->env->handler->give_up(conn, held, &replies);
    pending_flush_for(conn);
    if (replies.failed) {
        conn_cut_no_memory(conn);
    } else {
        outbox_send_held(conn, &replies);
    }
    buf_free(&replies);
    /* Later replies wait only for what they read or write themselves, so that
     * reads of released data go on. */
    conn->hold_until = 0;
}

static void
send_segment(struct conn *conn, struct hold_segment *segment, uint64_t released)
{
    if (segment->until <= released) {
        outbox_send_held(conn, &segment->bytes);
    } else if (!conn_is_closing(conn)) {
        send_instead(conn, buf_slice(&segment->bytes));
    }
    buf_reset(&segment->bytes, KEEP_BYTES);
}

/* Appends the rest to the first segment if it is short, to save a write.
 * Without memory for the copy there are two writes. */
static void
join(struct hold *hold)
{
    if (hold->rest.bytes.len <= JOIN_BYTES) {
        buf_append_slice(&hold->first.bytes, buf_slice(&hold->rest.bytes));
        if (!hold->first.bytes.failed) {
            hold->first.until = hold->rest.until;
            hold->rest.bytes.len = 0;
        }
    }
}

/* Sends what is released. Returns whether there was something. */
static bool
release(struct conn *conn, uint64_t released, bool gives_up)
{
    struct hold *hold = conn->hold;
    uint64_t limit = gives_up ? UINT64_MAX : released;

    CHECK(hold->first.bytes.len > 0);
    if (hold->first.until > limit) {
        return false;
    }
    if (hold->rest.bytes.len > 0 && hold->rest.until <= released) {
        join(hold);
    }
    send_segment(conn, &hold->first, released);
    if (hold->rest.bytes.len > 0) {
        struct hold_segment empty = hold->first;

        hold->first = hold->rest;
        hold->rest = empty;
    }
    if (hold->first.bytes.len > 0 && hold->first.until <= limit) {
        send_segment(conn, &hold->first, released);
    }
    if (conn_is_closing(conn)) {
        return true;
    }
    if (hold->first.bytes.len == 0) {
        conn_drop_held(conn);
    }
    count_held(conn);
    conn_output_left(conn);
    return true;
}

/* Lowers the position that output waits for to the end of the log. A position
 * behind that end belongs to an older log, which the log of another server has
 * replaced (persist/adopt.h): then the end of the present log is enough. */
static void
lower(struct conn *conn)
{
    uint64_t end = atomic_load(conn->loop->log_end);
    struct hold *hold = conn->hold;

    if (conn->hold_until <= end) {
        return;
    }
    conn->hold_until = end;
    if (conn->held_bytes > 0) {
        hold->first.until = hold->first.until < end ? hold->first.until : end;
        hold->rest.until = hold->rest.until < end ? hold->rest.until : end;
    }
}

bool
hold_release(struct loop *loop, uint64_t until_ns)
{
    enum { AT_ONCE = 16 };
    unsigned done = 0;
    uint64_t released = atomic_load(loop->released);
    bool gives_up = atomic_load(loop->gives_up);
    struct conn *next;

    pending_flush(loop); /* may close any connection */
    for (struct conn *conn = loop->held; conn != NULL; conn = next) {
        next = conn->hold->next; /* sending closes no connection but this one */
        lower(conn);
        if (release(conn, released, gives_up) && ++done % AT_ONCE == 0 &&
            clock_mono_ns() >= until_ns) {
            return next == NULL;
        }
    }
    return true;
}

/* ---- holding ------------------------------------------------------------- */

static void
keep_replies(struct conn *conn, struct buf *out)
{
    struct hold *hold = conn->hold;
    struct hold_segment *to;

    if (hold == NULL) {
        hold = mem_try_zalloc(sizeof(*hold));
        if (hold == NULL) {
            pending_flush_for(conn);
            conn_cut_no_memory(conn);
            return;
        }
        conn->hold = hold;
    }
    if (conn->held_bytes == 0) {
        hold->first.until = conn->hold_until;
    }
    to = conn->hold_until > hold->first.until || hold->rest.bytes.len > 0
             ? &hold->rest
             : &hold->first;
    if (to->bytes.len == 0 && out->len > LONG_BYTES) {
        buf_exchange(&to->bytes, out); /* without a copy */
    } else {
        buf_append_slice(&to->bytes, buf_slice(out));
    }
    if (to->bytes.failed) {
        pending_flush_for(conn);
        conn_cut_no_memory(conn);
        return;
    }
    to->until = conn->hold_until;
    CHECK(to == &hold->first || hold->first.until <= to->until);
    hold->used = true;
    if (conn->held_bytes == 0) {
        list_add(conn->loop, conn);
    }
    count_held(conn);
}

/* Holds the first output of a connection. Its position may have been released
 * meanwhile, and then no wake-up would come for it. Once output is held, a
 * wake-up is certain. */
static void
hold_first(struct conn *conn, struct buf *out)
{
    struct loop *loop = conn->loop;

    loop_expect_wake(loop);
    lower(conn);
    if (conn->hold_until <= atomic_load(loop->released)) {
        pending_send(conn, out);
    } else if (atomic_load(loop->gives_up)) {
        send_instead(conn, buf_slice(out));
    } else {
        keep_replies(conn, out);
    }
}

void
hold_send(struct conn *conn, struct buf *out)
{
    bool released =
        conn->hold_until <=
        atomic_load_explicit(conn->loop->released, memory_order_acquire);

    if (__builtin_expect(released & (conn->held_bytes == 0), 1)) {
        pending_send(conn, out);
    } else if (conn_is_closing(conn) || out->len == 0) {
        ; /* drop it */
    } else if (conn->held_bytes == 0) {
        hold_first(conn, out);
    } else {
        keep_replies(conn, out);
    }
    out->len = 0;
}

void
hold_trim(struct conn *conn)
{
    if (conn->hold != NULL && conn->held_bytes == 0) {
        if (!conn->hold->used) {
            conn_free_hold(conn);
        } else {
            conn->hold->used = false;
        }
    }
}
