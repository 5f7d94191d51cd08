/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the fields of a client's line, in Redis's order.
 */
#include "engine/client.h"

#include "access/table.h"
#include "access/user.h"
#include "push/pubsub.h"
#include "push/tracking.h"

#include <inttypes.h>

/* Returns the id that invalidations go to; -1: the client does not track. */
static int64_t
redirect_of(const struct receiver *receiver)
{
    return atomic_load(&receiver->tracks) != 0
               ? (int64_t)atomic_load(&receiver->redirect)
               : -1;
}

void
client_flags(const struct session *session, char *ret_flags)
{
    const struct receiver *receiver = &session->receiver;
    const struct conn *conn = session->conn;
    uint32_t tracks = atomic_load(&receiver->tracks);
    bool in_multi =
        atomic_load_explicit(&session->multi_count, memory_order_relaxed) >= 0;
    bool waits = atomic_load_explicit(&session->blocked,
                                      memory_order_relaxed) != SESSION_RUNS;
    const struct {
        char letter;
        bool has;
    } flags[CLIENT_FLAGS_MAX] = {
        { 'O', receiver->monitors },
        { 'P', receiver_subscribes(receiver) },
        { 'x', in_multi },
        { 'b', waits },
        { 't', (tracks & TRACKS) != 0 },
        { 'r', session->reads_replica },
        { 'R', (tracks & TRACKS_BROKEN) != 0 },
        { 'B', (tracks & TRACKS_BCAST) != 0 },
        { 'U', conn != NULL && conn->is_unix },
        { 'e', session->no_evict },
        { 'T', session->no_touch },
    };
    char *to = ret_flags;

    for (size_t i = 0; i < CLIENT_FLAGS_MAX; i++) {
        if (flags[i].has) {
            *to++ = flags[i].letter;
        }
    }
    if (to == ret_flags) {
        *to++ = 'N';
    }
    *to = '\0';
}

static uint64_t
seconds_since(uint64_t then_ms, uint64_t now_ms)
{
    return now_ms > then_ms ? (now_ms - then_ms) / 1000 : 0;
}

uint64_t
client_age_s(const struct session *session, uint64_t now_ms)
{
    return seconds_since(
        atomic_load_explicit(&session->created_ms, memory_order_relaxed),
        now_ms);
}

uint64_t
client_idle_s(const struct session *session, uint64_t now_ms)
{
    return seconds_since(
        atomic_load_explicit(&session->active_ms, memory_order_relaxed),
        now_ms);
}

static const char *
last_command_name(const struct session *session)
{
    uint32_t last =
        atomic_load_explicit(&session->last_command, memory_order_relaxed);

    return last > 0 ? command_at(last - 1)->name : "NULL";
}

static const char *
text_or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* Appends a name, which may be too long for buf_printf. */
static void
append_field(struct buf *text, const char *name, const char *value)
{
    buf_append_slice(text, slice_of(name));
    buf_append_slice(text, slice_of(text_or_empty(value)));
}

/* Appends the memory fields. Arguments and fixed reply buffers belong to the
 * loop, so argv-mem, rbs, rbp and obl are 0. */
static void
append_memory(struct buf *text, const struct session *session)
{
    const struct conn *conn = session->conn;
    size_t input = 0, output = 0, total = sizeof(struct client);
    size_t multi =
        atomic_load_explicit(&session->multi_bytes, memory_order_relaxed);

    if (conn != NULL) {
        input = atomic_load_explicit(&conn->input_bytes, memory_order_relaxed);
        output =
            atomic_load_explicit(&conn->output_bytes, memory_order_relaxed);
        total = atomic_load_explicit(&conn->usage.bytes, memory_order_relaxed);
    }
    buf_printf(text,
               " qbuf=%zu qbuf-free=0 argv-mem=0 multi-mem=%zu rbs=0 rbp=0 "
               "obl=0 oll=%d"
               " omem=%zu tot-mem=%zu events=%s",
               input, multi, output > 0, output, total,
               output > 0 ? "rw" : "r");
}

void
client_line(struct buf *text, const struct session *session,
            const struct command *running, uint64_t now_ms)
{
    const struct conn *conn = session->conn;
    char peer[CONN_ADDRESS_MAX] = "", local[CONN_ADDRESS_MAX] = "";
    char flags[CLIENT_FLAGS_MAX + 1];

    if (conn != NULL) {
        conn_peer_address(conn, peer);
        conn_local_address(conn, local);
    }
    buf_printf(text, "id=%" PRIu64 " addr=%s laddr=%s fd=%d",
               conn != NULL ? conn_id(conn) : session->id, peer, local,
               conn != NULL ? conn->fd : -1);
    append_field(text, " name=", session->name);
    client_flags(session, flags);
    buf_printf(text, " age=%" PRIu64 " idle=%" PRIu64 " flags=%s capa=%s",
               client_age_s(session, now_ms), client_idle_s(session, now_ms),
               flags, session->follows_redirects ? "r" : "");
    buf_printf(
        text, " db=%" PRIu32 " sub=%zu psub=%zu ssub=%zu multi=%" PRId32,
        atomic_load_explicit(&session->db, memory_order_relaxed),
        pubsub_count(&session->receiver, PUBSUB_CHANNEL),
        pubsub_count(&session->receiver, PUBSUB_PATTERN),
        pubsub_count(&session->receiver, PUBSUB_SHARD),
        atomic_load_explicit(&session->multi_count, memory_order_relaxed));
    append_memory(text, session);
    append_field(text, " cmd=",
                 running != NULL ? running->name : last_command_name(session));
    append_field(text, " user=",
                 session->user != NULL ? session->user->name : "default");
    buf_printf(text, " redir=%" PRId64 " resp=%u filters=%zu",
               redirect_of(&session->receiver), session->resp,
               pubsub_count(&session->receiver, PUBSUB_FILTER));
    append_field(text, " lib-name=", session->lib_name);
    append_field(text, " lib-ver=", session->lib_ver);
    buf_append(text, "\n", 1);
}
