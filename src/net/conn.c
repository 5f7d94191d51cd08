/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of a connection, the lists that it is in, its memory, and its end.
 * serve.c reads and executes; hold.c, pending.c and outbox.c send.
 */
#include "net/conn.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"

enum {
    /* The hard limit of unread replies before authentication. */
    UNTRUSTED_BYTES = 1024,
    /* Held output (hold.h) is bounded even if the options set no limit. */
    HELD_BYTES = 16 * 1024 * 1024,
};

/* ---- waiting ------------------------------------------------------------- */

static void
join_waiting(struct conn *conn, struct conn **list, enum conn_wait wait)
{
    CHECK(!conn_is_closing(conn) && conn->wait == CONN_RUNS);
    conn->wait = wait;
    conn->next_waiting = *list;
    conn->waiting_at = list;
    if (*list != NULL) {
        (*list)->waiting_at = &conn->next_waiting;
    }
    *list = conn;
}

static void
leave_waiting(struct conn *conn)
{
    CHECK(conn->wait != CONN_RUNS && *conn->waiting_at == conn);
    *conn->waiting_at = conn->next_waiting;
    if (conn->next_waiting != NULL) {
        conn->next_waiting->waiting_at = conn->waiting_at;
    }
    if (conn_is_parked(conn)) {
        metric_add(METRIC_BLOCKED_CLIENTS, -1);
    }
    conn->wait = CONN_RUNS;
    conn->parked_until = 0;
}

static void
queue(struct conn *conn, enum conn_wait wait)
{
    join_waiting(conn, &conn->loop->resumable, wait);
    loop_resume_soon(conn->loop);
}

void
conn_resume_later(struct conn *conn)
{
    if (!conn_is_closing(conn)) {
        queue(conn, CONN_FOR_TURN);
    }
}

void
conn_begin_turns(struct loop *loop)
{
    if (loop->turns == NULL && loop->resumable != NULL) {
        loop->turns = loop->resumable;
        loop->turns->waiting_at = &loop->turns;
        loop->resumable = NULL;
    }
}

struct conn *
conn_next_turn(struct loop *loop)
{
    struct conn *conn = loop->turns;

    if (conn != NULL) {
        leave_waiting(conn);
    }
    return conn;
}

void
conn_park(struct conn *conn, enum conn_wait wait, uint32_t at_least_ms)
{
    struct loop *loop = conn->loop;

    CHECK(wait == CONN_FOR_EVENT || wait == CONN_FOR_ROOM);
    if (conn_is_closing(conn)) {
        return;
    }
    join_waiting(conn,
                 wait == CONN_FOR_ROOM ? &loop->parked_for_room : &loop->parked,
                 wait);
    if (at_least_ms > 0) {
        conn->parked_until = (uint32_t)uv_now(&loop->uv) + at_least_ms;
        conn->parked_until += conn->parked_until == 0;
    }
    metric_add(METRIC_BLOCKED_CLIENTS, 1);
    loop_expect_wake(loop);
    loop_tick_soon(loop);
}

/* Compares the low 32 bits of two times in ms, which is right for waits of up
 * to 24 days; no wait is that long. */
static bool
is_too_early(const struct conn *conn)
{
    uint32_t now = (uint32_t)uv_now(&conn->loop->uv);

    return conn->parked_until != 0 && (int32_t)(conn->parked_until - now) > 0;
}

static void
unpark(struct conn **list)
{
    while (*list != NULL) {
        struct conn *conn = *list;

        if (is_too_early(conn)) {
            list = &conn->next_waiting;
        } else {
            leave_waiting(conn);
            queue(conn, CONN_RETRIES);
        }
    }
}

void
conn_unpark_all(struct loop *loop)
{
    const struct conn_handler *handler = loop->env->handler;

    unpark(&loop->parked);
    if (loop->parked_for_room != NULL &&
        (handler->has_room == NULL || handler->has_room(loop))) {
        unpark(&loop->parked_for_room);
    }
}

void
conn_unpark_for_room(struct loop *loop)
{
    unpark(&loop->parked_for_room);
}

void
conn_output_left(struct conn *conn)
{
    conn->active_ms = uv_now(&conn->loop->uv);
    if (!conn_is_closing(conn) && conn->wait == CONN_RUNS &&
        (!conn->reading || conn->state == CONN_LEAVING)) {
        conn_resume_later(conn);
    }
}

/* ---- what it keeps ------------------------------------------------------- */

static void
count_memory(struct conn *conn)
{
    struct usage *usage = conn->loop->env->usage;
    const struct outbox *box = conn->outbox;
    const struct hold *hold = conn->hold;
    uint64_t bytes;

    if (usage == NULL || conn_is_closing(conn)) {
        return;
    }
    bytes = conn->owned_bytes + conn->kept.capacity +
            stream_memory_bytes(&conn->input);
    if (conn->tls != NULL) {
        bytes += tls_memory_bytes(conn->tls);
    }
    if (box != NULL) {
        bytes += sizeof(*box) + box->sending.capacity + box->waiting.capacity +
                 box->sealed.capacity;
    }
    if (hold != NULL) {
        bytes += sizeof(*hold) + hold->first.bytes.capacity +
                 hold->rest.bytes.capacity;
    }
    if (usage_set(usage, &conn->usage, bytes)) {
        conn->loop->above = true;
    }
}

/* Sets a count for CLIENT LIST (at most 4 GiB), and adds the difference to its
 * gauge. */
static void
set_count(struct conn *conn, _Atomic uint32_t *count, size_t bytes,
          enum metric metric)
{
    uint32_t now = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    uint32_t before = atomic_load_explicit(count, memory_order_relaxed);

    if (now != before) {
        metric_add(metric, (int64_t)now - before);
        atomic_store_explicit(count, now, memory_order_relaxed);
        count_memory(conn);
    }
}

void
conn_count_input(struct conn *conn)
{
    set_count(conn, &conn->input_bytes,
              conn->kept.len + stream_kept_bytes(&conn->input),
              METRIC_CLIENT_INPUT_BYTES);
}

void
conn_set_owned(struct conn *conn, uint64_t bytes)
{
    if (bytes != conn->owned_bytes) {
        conn->owned_bytes = bytes;
        count_memory(conn);
    }
}

const struct output_limits *
conn_output_limits(const struct conn *conn)
{
    return &conn->loop->env->limits->output[conn->output_class];
}

uint64_t
conn_hard_limit(const struct conn *conn)
{
    uint64_t hard = conn_output_limits(conn)->hard_bytes;

    return conn->trusted || (hard > 0 && hard < UNTRUSTED_BYTES)
               ? hard
               : UNTRUSTED_BYTES;
}

/* Returns how many held bytes make the connection wait. There is always a
 * limit, since a client whose output is held gets no reply sooner by sending
 * more. It is at most half of the hard limit, because held output becomes
 * unread output when it is released, all at once. */
static uint64_t
held_limit(uint64_t soft, uint64_t hard)
{
    uint64_t limit = HELD_BYTES;

    if (hard > 0 && limit > hard / 2) {
        limit = hard / 2;
    }
    return soft > 0 && soft < limit ? soft : limit;
}

size_t
conn_count_output(struct conn *conn)
{
    struct outbox *box = conn->outbox;
    size_t unsent =
        box != NULL ? uv_stream_get_write_queue_size(&conn->uv.stream) +
                          box->waiting.len - box->waiting_at + box->sealed.len
                    : 0;
    uint64_t soft = conn_output_limits(conn)->soft_bytes;
    uint64_t hard = conn_hard_limit(conn);

    set_count(conn, &conn->output_bytes, unsent + conn->held_bytes,
              METRIC_CLIENT_OUTPUT_BYTES);
    if (box != NULL && (soft == 0 || unsent <= soft)) {
        box->over_since_ms = 0;
    } else if (box != NULL && box->over_since_ms == 0) {
        box->over_since_ms = uv_now(&conn->loop->uv);
    }
    /* Unread output above the hard limit closes the connection (outbox_send).
     * Only output that was held is exempt: then the connection waits here. */
    conn->full = conn->held_bytes > held_limit(soft, hard) ||
                 (hard > 0 && unsent > hard);
    return unsent;
}

void
conn_free_hold(struct conn *conn)
{
    if (conn->hold != NULL) {
        CHECK(conn->held_bytes == 0);
        buf_free(&conn->hold->first.bytes);
        buf_free(&conn->hold->rest.bytes);
        mem_free(conn->hold);
        conn->hold = NULL;
    }
}

void
conn_free_outbox(struct conn *conn)
{
    if (conn->outbox != NULL) {
        buf_free(&conn->outbox->sending);
        buf_free(&conn->outbox->waiting);
        buf_free(&conn->outbox->sealed);
        mem_free(conn->outbox);
        conn->outbox = NULL;
        (void)conn_count_output(conn);
    }
}

/* ---- from beginning to end ----------------------------------------------- */

void
conn_join(struct conn *conn)
{
    struct conn_list *list = &conn->loop->conns;

    CHECK(conn->state == CONN_OPEN);
    conn->next = NULL;
    conn->prev = list->last;
    if (list->last != NULL) {
        list->last->next = conn;
    } else {
        list->first = conn;
    }
    list->last = conn;
    registry_add(conn->loop->env->registry, &conn->registered, conn);
    count_memory(conn);
    conn->loop->open_conns++;
    metric_add(METRIC_CONNECTED_CLIENTS, 1);
    metric_add(METRIC_CONNECTIONS, 1);
}

static void
leave_list(struct conn *conn)
{
    struct conn_list *list = &conn->loop->conns;

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

void
conn_drop_held(struct conn *conn)
{
    struct hold *hold = conn->hold;

    CHECK(hold != NULL);
    *hold->at = hold->next;
    if (hold->next != NULL) {
        hold->next->hold->at = hold->at;
    } else {
        conn->loop->held_end = hold->at;
    }
    conn->held_bytes = 0;
    metric_add(METRIC_HELD_CLIENTS, -1);
}

/* Takes the connection out of loop->pushed, if it is there, with its pushes. */
static void
drop_pushed(struct conn *conn)
{
    if (conn->pushed_at != NULL) {
        CHECK(conn->loop->pushed_bytes >= conn->pushed.len);
        conn->loop->pushed_bytes -= conn->pushed.len;
        conn_leave_pushed(conn);
        buf_free(&conn->pushed);
    }
}

static void
on_conn_closed(uv_handle_t *handle)
{
    struct conn *conn = handle->data;
    struct loop *loop = conn->loop;

    CHECK(conn->magic == CONN_MAGIC && conn_is_closing(conn) &&
          conn->wait == CONN_RUNS && conn->pushed_at == NULL &&
          conn->pending_bytes == 0);
    conn->magic = 0;
    conn_free_outbox(conn);
    conn_free_hold(conn);
    buf_free(&conn->kept);
    tls_free(conn->tls);
    loop->open_conns--;
    registry_release(loop->env->registry,
                     conn->is_reserved ? PLACE_RESERVED : PLACE_COMMON);
    loop->env->handler->closed(conn);
}

void
conn_leave(struct conn *conn)
{
    if (conn->state == CONN_OPEN) {
        conn->state = CONN_LEAVING;
    }
}

/* Tells a TLS client that the connection is closed on purpose, if all other
 * output was sent and the socket takes the record. */
static void
say_end(struct conn *conn)
{
    struct buf *sealed = &conn->loop->sealed;

    if (conn->tls != NULL && conn->outbox == NULL && sealed->len == 0) {
        tls_end(conn->tls, sealed);
        if (sealed->len > 0) {
            uv_buf_t part = loop_uv_buf(buf_slice(sealed));

            (void)uv_try_write(&conn->uv.stream, &part, 1);
        }
        sealed->len = 0;
    }
}

void
conn_close(struct conn *conn)
{
    if (conn_is_closing(conn)) {
        return;
    }
    say_end(conn);
    if (conn->wait != CONN_RUNS) {
        leave_waiting(conn);
    }
    if (conn->held_bytes > 0) {
        conn_drop_held(conn);
        (void)conn_count_output(conn);
    }
    drop_pushed(conn);
    conn->state = CONN_CLOSING;
    leave_list(conn);
    registry_remove(conn->loop->env->registry, &conn->registered);
    usage_leave(conn->loop->env->usage, &conn->usage);
    stream_fini(&conn->input, conn->loop->pool);
    conn->kept.len = 0;
    conn_count_input(conn);
    metric_add(METRIC_CONNECTED_CLIENTS, -1);
    uv_close(&conn->uv.handle, on_conn_closed);
}

void
conn_cut_no_memory(struct conn *conn)
{
    log_repeated(LOG_WARN, "net.conn", "cut, no memory for its reply",
                 "id=%llu", (unsigned long long)conn_id(conn));
    conn_close(conn);
}

/* ---- id and addresses ---------------------------------------------------- */

struct conn *
conn_find(struct loop *loop, uint64_t id)
{
    struct conn *conn = loop->conns.first;

    while (conn != NULL && conn_id(conn) != id) {
        conn = conn->next;
    }
    return conn;
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

bool
conn_is_near(const struct conn *conn)
{
    return conn->is_unix || address_peer_is_local(conn->fd) ||
           (conn->tls != NULL && tls_has_certificate(conn->tls));
}
