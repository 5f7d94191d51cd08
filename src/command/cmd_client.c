/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLIENT ID GETNAME SETNAME SETINFO INFO NO-EVICT NO-TOUCH REPLY, and the line
 * that INFO and LIST show. Each runs on the loop of its connection; what other
 * loops read changes under the registry's lock.
 */
#include "command/cmd_client.h"

#include "admin/pubsub.h"
#include "admin/tracking.h"
#include "engine/handlers.h"

#include "net/registry.h"

#include <inttypes.h>

void
cmd_client_lock(struct request *req)
{
    if (req->session->conn != NULL) {
        registry_lock(req->service->registry);
    }
}

void
cmd_client_unlock(struct request *req)
{
    if (req->session->conn != NULL) {
        registry_unlock(req->service->registry);
    }
}

enum err
cmd_client_check_text(struct request *req, const char *what, struct slice text)
{
    if (text.len > SESSION_TEXT_MAX) {
        return request_fail(req, ERR_CUSTOM,
                            "%.32s cannot be longer than %d bytes.", what,
                            SESSION_TEXT_MAX);
    }
    if (!session_text_is_valid(text)) {
        return request_fail(req, ERR_CUSTOM,
                            "%.32s cannot contain spaces, newlines or "
                            "special characters.",
                            what);
    }
    return OK;
}

enum err
cmd_client_parse_type(struct request *req, struct slice type,
                      enum client_type *ret_type)
{
    static const struct {
        const char *name;
        enum client_type type;
    } types[] = { { "normal", CLIENT_NORMAL },   { "pubsub", CLIENT_PUBSUB },
                  { "master", CLIENT_MASTER },   { "primary", CLIENT_MASTER },
                  { "replica", CLIENT_REPLICA }, { "slave", CLIENT_REPLICA } };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (slice_is_word(type, types[i].name)) {
            *ret_type = types[i].type;
            return OK;
        }
    }
    return request_fail(req, ERR_CUSTOM, "Unknown client type '%.*s'",
                        slice_shown(type), type.data);
}

enum client_type
cmd_client_type(const struct session *session)
{
    return receiver_subscribes(&session->receiver) ? CLIENT_PUBSUB
                                                   : CLIENT_NORMAL;
}

/* ---- the line ------------------------------------------------------------ */

/* Returns the id that invalidations go to; -1: the client does not track. */
static int64_t
redirect_of(const struct receiver *receiver)
{
    return atomic_load(&receiver->tracks) != 0
               ? (int64_t)atomic_load(&receiver->redirect)
               : -1;
}

void
cmd_client_flags(const struct session *session, char *ret_flags)
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
    } flags[CMD_CLIENT_FLAGS_MAX] = {
        { 'O', receiver->monitors },
        { 'P', receiver_subscribes(receiver) },
        { 'x', in_multi },
        { 'b', waits },
        { 't', (tracks & TRACKS) != 0 },
        { 'R', (tracks & TRACKS_BROKEN) != 0 },
        { 'B', (tracks & TRACKS_BCAST) != 0 },
        { 'U', conn != NULL && conn->is_unix },
        { 'e', session->no_evict },
        { 'T', session->no_touch },
    };
    char *to = ret_flags;

    for (size_t i = 0; i < CMD_CLIENT_FLAGS_MAX; i++) {
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
cmd_client_age_s(const struct session *session, uint64_t now_ms)
{
    return seconds_since(
        atomic_load_explicit(&session->created_ms, memory_order_relaxed),
        now_ms);
}

uint64_t
cmd_client_idle_s(const struct session *session, uint64_t now_ms)
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
cmd_client_line(struct buf *text, const struct session *session,
                const struct command *running, uint64_t now_ms)
{
    const struct conn *conn = session->conn;
    char peer[CONN_ADDRESS_MAX] = "", local[CONN_ADDRESS_MAX] = "";
    char flags[CMD_CLIENT_FLAGS_MAX + 1];

    if (conn != NULL) {
        conn_peer_address(conn, peer);
        conn_local_address(conn, local);
    }
    buf_printf(text, "id=%" PRIu64 " addr=%s laddr=%s fd=%d",
               conn != NULL ? conn_id(conn) : session->id, peer, local,
               conn != NULL ? conn->fd : -1);
    append_field(text, " name=", session->name);
    cmd_client_flags(session, flags);
    buf_printf(text, " age=%" PRIu64 " idle=%" PRIu64 " flags=%s",
               cmd_client_age_s(session, now_ms),
               cmd_client_idle_s(session, now_ms), flags);
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
    buf_printf(text, " user=default redir=%" PRId64 " resp=%u",
               redirect_of(&session->receiver), session->resp);
    append_field(text, " lib-name=", session->lib_name);
    append_field(text, " lib-ver=", session->lib_ver);
    buf_append(text, "\n", 1);
}

/* ---- handlers ------------------------------------------------------------ */

enum err
cmd_client_id(struct request *req)
{
    reply_int(req->reply, (int64_t)req->session->id);
    return OK;
}

enum err
cmd_client_info(struct request *req)
{
    struct buf text = { 0 };

    cmd_client_line(&text, req->session, req->command, req->now_ms);
    reply_text(req->reply, &text);
    return OK;
}

enum err
cmd_client_getname(struct request *req)
{
    if (req->session->name != NULL) {
        reply_bulk_text(req->reply, req->session->name);
    } else {
        reply_null(req->reply);
    }
    return OK;
}

static enum err
set_text(struct request *req, const char *what, char **field, struct slice text)
{
    enum err err = cmd_client_check_text(req, what, text);

    if (err == OK) {
        cmd_client_lock(req);
        err = session_set_text(field, text) ? OK : ERR_NOMEM;
        cmd_client_unlock(req);
    }
    if (err == OK) {
        reply_ok(req->reply);
    }
    return err;
}

enum err
cmd_client_setname(struct request *req)
{
    return set_text(req, "Client names", &req->session->name, req->argv[2]);
}

enum err
cmd_client_setinfo(struct request *req)
{
    struct slice option = req->argv[2];

    if (slice_is_word(option, "lib-name")) {
        return set_text(req, "LIB-NAME", &req->session->lib_name, req->argv[3]);
    }
    if (slice_is_word(option, "lib-ver")) {
        return set_text(req, "LIB-VER", &req->session->lib_ver, req->argv[3]);
    }
    return request_fail(req, ERR_CUSTOM, "Unrecognized option '%.*s'",
                        slice_shown(option), option.data);
}

static enum err
set_switch(struct request *req, bool *field)
{
    bool on = args_word(&req->args, "on");

    if (!on && !args_word(&req->args, "off")) {
        return ERR_SYNTAX;
    }
    cmd_client_lock(req);
    *field = on;
    cmd_client_unlock(req);
    reply_ok(req->reply);
    return OK;
}

enum err
cmd_client_no_evict(struct request *req)
{
    return set_switch(req, &req->session->no_evict);
}

enum err
cmd_client_no_touch(struct request *req)
{
    return set_switch(req, &req->session->no_touch);
}

/* Dispatch drops the replies; OFF and SKIP have none themselves. */
enum err
cmd_client_reply(struct request *req)
{
    struct session *session = req->session;

    if (args_word(&req->args, "on")) {
        session->reply_mode = REPLY_ON;
        reply_ok(req->reply);
    } else if (args_word(&req->args, "off")) {
        session->reply_mode = REPLY_OFF;
    } else if (args_word(&req->args, "skip")) {
        if (session->reply_mode != REPLY_OFF) {
            session->reply_mode = REPLY_SKIP_NEXT;
        }
    } else {
        return ERR_SYNTAX;
    }
    return OK;
}

/* Never runs: the arity of a container requires a subcommand. COMMAND, which
 * may stand alone, has a handler of its own. */
enum err
cmd_container(struct request *req)
{
    return request_fail(req, ERR_ARITY, "%s", req->command->name);
}
