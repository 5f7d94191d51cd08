/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two segments, each with the position it waits for: the first, whose position
 * stands, and one that gathers what comes meanwhile, whose position rises. When
 * the first is released it is sent, and the other takes its place: so a client
 * that never stops has its replies one or two releases later, and the cost does
 * not grow with what it sends.
 */
#include "net/hold.h"

#include "base/mem.h"
#include "base/metrics.h"
#include "net/conn_internal.h"
#include "net/outbox.h"
#include "net/pending.h"

enum {
    KEEP_BYTES = 1024, /* of memory, for the next time */
    LONG_BYTES = 1024 * 1024,
    JOIN_BYTES = 128 * 1024, /* copying these is cheaper than another write */
};

struct segment {
    struct buf bytes;
    uint64_t until;
};

struct hold {
    struct segment first, rest; /* rest is empty if first is */
    struct conn *next, **at;    /* of loop->held */
    bool used;                  /* since hold_trim looked */
};

/* ---- the loop's list ----------------------------------------------------- */

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
list_remove(struct loop *loop, struct conn *conn)
{
    struct hold *hold = conn->hold;

    *hold->at = hold->next;
    if (hold->next != NULL) {
        hold->next->hold->at = hold->at;
    } else {
        loop->held_end = hold->at;
    }
    metric_add(METRIC_HELD_CLIENTS, -1);
}

static void
count_held(struct conn *conn)
{
    conn->held_bytes = conn->hold->first.bytes.len + conn->hold->rest.bytes.len;
    (void)outbox_count(conn);
}

/* ---- sending ------------------------------------------------------------- */

static void
send_instead(struct conn *conn, struct slice held)
{
    struct buf replies = { 0 };

    conn->loop->env->handler->give_up(conn, held, &replies);
    if (replies.failed) {
        conn_cut_no_memory(conn);
    } else {
        pending_flush_for(conn);
        outbox_send_held(conn, &replies);
    }
    buf_free(&replies);
    /* All that waited has its answer. What comes next waits for no more than
     * it reads or writes itself, so that reads of what is released go on. */
    conn->hold_until = 0;
}

static void
send_segment(struct conn *conn, struct segment *segment, uint64_t released)
{
    if (segment->until <= released) {
        outbox_send_held(conn, &segment->bytes);
    } else if (!conn->closing) {
        send_instead(conn, buf_slice(&segment->bytes));
    }
    buf_reset(&segment->bytes, KEEP_BYTES);
}

/* One write is dearer than to copy what is short; without memory for the copy
 * there are two (and the first forgets that it failed when it is sent). */
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

/* Sends what may be sent, and finds the rest its new place. */
static void
look_at(struct conn *conn, uint64_t released, bool gives_up)
{
    struct hold *hold = conn->hold;
    uint64_t limit = gives_up ? UINT64_MAX : released;

    if (hold->first.until > limit) {
        return;
    }
    if (hold->rest.bytes.len > 0 && hold->rest.until <= released) {
        join(hold);
    }
    send_segment(conn, &hold->first, released);
    if (hold->rest.bytes.len > 0) {
        struct segment empty = hold->first;

        hold->first = hold->rest;
        hold->rest = empty;
    }
    if (hold->first.bytes.len > 0 && hold->first.until <= limit) {
        send_segment(conn, &hold->first, released);
    }
    if (conn->closing) {
        return; /* hold_drop has been here */
    }
    conn->active_ms = uv_now(&conn->loop->uv);
    count_held(conn);
    if (conn->held_bytes == 0) {
        list_remove(conn->loop, conn);
    }
    conn_released(conn);
}

void
hold_look(struct loop *loop)
{
    uint64_t released = atomic_load(loop->released);
    bool gives_up = atomic_load(loop->gives_up);
    struct conn *next;

    pending_flush(loop); /* which may close any */
    for (struct conn *conn = loop->held; conn != NULL; conn = next) {
        next = conn->hold->next; /* sending closes nobody but conn */
        look_at(conn, released, gives_up);
    }
}

/* ---- holding ------------------------------------------------------------- */

static void
keep(struct conn *conn, struct buf *out)
{
    struct hold *hold = conn->hold;
    struct segment *to;

    if (hold == NULL) {
        hold = mem_try_zalloc(sizeof(*hold));
        if (hold == NULL) {
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
        buf_exchange(&to->bytes, out); /* what is long is not copied */
    } else {
        buf_append_slice(&to->bytes, buf_slice(out));
    }
    if (to->bytes.failed) {
        conn_cut_no_memory(conn);
        return;
    }
    to->until = conn->hold_until;
    hold->used = true;
    if (conn->held_bytes == 0) {
        list_add(conn->loop, conn);
    }
    count_held(conn);
}

/* Nothing is held yet: it may have been released meanwhile, and then nobody
 * would wake the loop for it. Once something is held, a wake-up is certain. */
static void
hold_first(struct conn *conn, struct buf *out)
{
    struct loop *loop = conn->loop;

    loop_expect_wake(loop);
    if (conn->hold_until <= atomic_load(loop->released)) {
        pending_send(conn, out);
    } else if (atomic_load(loop->gives_up)) {
        send_instead(conn, buf_slice(out));
    } else {
        keep(conn, out);
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
    } else if (conn->closing || out->len == 0) {
        ; /* nobody is there, or nothing */
    } else if (conn->held_bytes == 0) {
        hold_first(conn, out);
    } else {
        keep(conn, out);
    }
    out->len = 0;
}

/* ---- ends ---------------------------------------------------------------- */

void
hold_drop(struct conn *conn)
{
    if (conn->held_bytes > 0) {
        list_remove(conn->loop, conn);
        conn->held_bytes = 0;
        (void)outbox_count(conn);
    }
}

void
hold_free(struct conn *conn)
{
    if (conn->hold != NULL) {
        buf_free(&conn->hold->first.bytes);
        buf_free(&conn->hold->rest.bytes);
        mem_free(conn->hold);
        conn->hold = NULL;
    }
}

size_t
hold_memory_bytes(const struct conn *conn)
{
    const struct hold *hold = conn->hold;

    return hold != NULL ? sizeof(*hold) + hold->first.bytes.capacity +
                              hold->rest.bytes.capacity
                        : 0;
}

void
hold_trim(struct conn *conn)
{
    if (conn->hold != NULL && conn->held_bytes == 0) {
        if (!conn->hold->used) {
            hold_free(conn);
        } else {
            conn->hold->used = false;
        }
    }
}
