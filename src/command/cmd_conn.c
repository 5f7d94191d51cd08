/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands about their own connection: PING ECHO QUIT RESET SELECT AUTH HELLO.
 * They run on the connection's loop; what CLIENT LIST reads from other loops
 * changes under the registry's lock.
 */
#include "access/auth.h"
#include "access/auth_delay.h"
#include "access/handlers.h"
#include "access/users.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "command/cmd_client.h"
#include "engine/audit.h"
#include "engine/observe.h"
#include "engine/request.h"
#include "engine/rights.h"
#include "engine/txn.h"
#include "info/info.h"
#include "net/address.h"
#include "net/conn.h"

#include <openssl/crypto.h>

enum err
cmd_ping(struct request *req)
{
    if (req->argc > 2) {
        return request_fail(req, ERR_ARITY, "ping");
    }
    if (req->session->subscribed) {
        reply_array(req->reply, 2);
        reply_bulk_text(req->reply, "pong");
        reply_bulk(req->reply, req->argc == 2 ? req->argv[1] : slice_lit(""));
    } else if (req->argc == 2) {
        reply_bulk(req->reply, req->argv[1]);
    } else {
        reply_simple(req->reply, "PONG");
    }
    return OK;
}

enum err
cmd_echo(struct request *req)
{
    reply_bulk(req->reply, req->argv[1]);
    return OK;
}

enum err
cmd_quit(struct request *req)
{
    req->session->closing = true;
    reply_ok(req->reply);
    return OK;
}

enum err
cmd_reset(struct request *req)
{
    const struct users *users = req->service->users;

    txn_end(req->session);
    observe_leave(req->worker, req->session);
    cmd_client_lock(req);
    session_reset(req->session, !users_ask_password(users));
    session_set_user(req->session, users->standard);
    cmd_client_unlock(req);
    req->reply->resp = 2;
    reply_simple(req->reply, "RESET");
    return OK;
}

enum err
cmd_select(struct request *req)
{
    uint32_t db;
    enum err err = request_parse_db(req, req->argv[1], &db);

    if (err != OK) {
        return err;
    }
    atomic_store_explicit(&req->session->db, db, memory_order_relaxed);
    reply_ok(req->reply);
    return OK;
}

/* Finds the source of the connection, by which failed logins are counted: a
 * client that guesses and reconnects keeps its source. */
static bool
find_source(const struct request *req, uint8_t ret_source[AUTH_DELAY_SOURCE])
{
    const struct conn *conn = req->session->conn;

    _Static_assert(AUTH_DELAY_SOURCE == (int)ADDRESS_SOURCE_BYTES, "the same");
    if (conn == NULL || req->service->auth_delay == NULL) {
        return false;
    }
    address_source(conn->fd, conn->is_unix, ret_source);
    return true;
}

/* A login between its parts. All zero: at its beginning. */
struct login {
    uint64_t until_ms; /* monotonic time until which it waits; 0: it does not
                          wait */
    struct auth_sum sum;
};

static void
forget_login(void *state)
{
    struct login *login = state;

    auth_sum_cleanse(&login->sum);
    mem_free(login);
}

/* Keeps a login for its next part. */
static enum err
pause_login(struct request *req, const struct login *login)
{
    struct login *kept = request_resumed(req);

    if (kept == NULL) {
        kept = mem_try_alloc(sizeof(*kept));
        if (kept == NULL) {
            return ERR_NOMEM;
        }
        *kept = *login;
        request_pause(req, kept, forget_login);
    }
    return ERR_AGAIN;
}

/* Delays a password after failed logins. Returns whether it has to wait. */
static bool
waits_for_turn(struct request *req, struct login *login)
{
    uint64_t max_ms = (uint64_t)req->service->conf->auth_failure_delay;
    uint64_t now_ms = clock_mono_ms();
    uint8_t source[AUTH_DELAY_SOURCE];

    if (request_resumed(req) == NULL && max_ms > 0 && request_may_pause(req) &&
        find_source(req, source)) {
        uint64_t wait_ms =
            auth_delay_ms(req->service->auth_delay, source, now_ms, max_ms);

        login->until_ms = wait_ms > 0 ? now_ms + wait_ms : 0;
    }
    if (now_ms >= login->until_ms) {
        return false;
    }
    req->session->wait_ms = (uint32_t)(login->until_ms - now_ms);
    req->session->wait = CONN_FOR_EVENT;
    return true;
}

/* Finds the user of a password. ERR_AGAIN: the login must wait, or a long
 * password is not hashed to its end yet. */
static enum err
find_user(struct request *req, struct slice name, struct slice password,
          struct user **ret_user)
{
    enum { PIECE_BYTES = 512 * 1024 };
    struct login first = { 0 };
    struct login *login = request_resumed(req);
    size_t most = request_may_pause(req) ? (size_t)PIECE_BYTES : SIZE_MAX;
    unsigned char digest[AUTH_DIGEST];

    login = login != NULL ? login : &first;
    if (waits_for_turn(req, login) ||
        !auth_sum_add(&login->sum, password, most, digest)) {
        return pause_login(req, login);
    }
    *ret_user = users_login(req->service->users, name, digest);
    OPENSSL_cleanse(digest, sizeof(digest));
    return OK;
}

/* After AUTH_ATTEMPTS_MAX failures in a row the connection is closed behind
 * the error, so that guessing costs a new connection every few attempts. */
static enum err
authenticate(struct request *req, struct slice name, struct slice password)
{
    struct session *session = req->session;
    struct user *user = NULL;
    uint8_t source[AUTH_DELAY_SOURCE];
    enum err err = find_user(req, name, password, &user);

    if (err != OK) {
        return err;
    }
    if (user != NULL) {
        cmd_client_lock(req);
        session_set_user(session, user);
        cmd_client_unlock(req);
        session->authenticated = true;
        session->auth_failures = 0;
        session->refusals = 0;
        return OK;
    }
    rights_note(req, "auth", req->argv[0], name);
    if (find_source(req, source) &&
        auth_delay_failed(req->service->auth_delay, source, clock_mono_ms())) {
        audit_failed_login(req, name);
    }
    session->auth_failures++;
    if (session->auth_failures >= AUTH_ATTEMPTS_MAX) {
        session->closing = true;
    }
    return ERR_WRONGPASS;
}

enum err
cmd_auth(struct request *req)
{
    enum err err;

    if (req->argc > 3) {
        return ERR_SYNTAX;
    }
    if (req->argc == 2 && req->service->users->standard->rules.nopass) {
        return request_fail(
            req, ERR_CUSTOM, "%s",
            "AUTH <password> called without any password configured for the "
            "default user. Are you sure your configuration is correct?");
    }
    if (req->argc == 2) {
        err = authenticate(req, slice_lit("default"), req->argv[1]);
    } else {
        err = authenticate(req, req->argv[1], req->argv[2]);
    }
    if (err == OK) {
        reply_ok(req->reply);
    }
    return err;
}

/* The arguments of HELLO. All are parsed before any takes effect. */
struct hello {
    unsigned resp;
    bool has_auth, has_name;
    struct slice user, password, name;
};

static enum err
parse_hello_options(struct request *req, struct hello *hello)
{
    struct args *args = &req->args;

    while (args_left(args) > 0) {
        struct slice word = args->argv[args->next];

        if (args_left(args) >= 3 && args_word(args, "AUTH")) {
            hello->has_auth = true;
            hello->user = args_bytes(args);
            hello->password = args_bytes(args);
        } else if (args_left(args) >= 2 && args_word(args, "SETNAME")) {
            enum err err;

            hello->has_name = true;
            hello->name = args_bytes(args);
            err = cmd_client_check_text(req, "Client names", hello->name);
            if (err != OK) {
                return err;
            }
        } else {
            return request_fail(req, ERR_CUSTOM,
                                "Syntax error in HELLO option '%.*s'",
                                slice_shown(word), word.data);
        }
    }
    return OK;
}

static enum err
parse_hello(struct request *req, struct hello *hello)
{
    int64_t version;

    hello->resp = req->session->resp;
    if (args_left(&req->args) == 0) {
        return OK;
    }
    version = args_i64(&req->args);
    if (req->args.err != OK) {
        return request_fail(
            req, ERR_CUSTOM, "%s",
            "Protocol version is not an integer or out of range");
    }
    if (version < 2 || version > 3) {
        return ERR_NOPROTO;
    }
    hello->resp = (unsigned)version;
    return parse_hello_options(req, hello);
}

static void
reply_hello(struct request *req)
{
    struct reply *reply = req->reply;

    reply_map(reply, 7);
    reply_bulk_text(reply, "server");
    reply_bulk_text(reply, "redis");
    reply_bulk_text(reply, "version");
    reply_bulk_text(reply, INFO_REDIS_VERSION);
    reply_bulk_text(reply, "proto");
    reply_int(reply, req->session->resp);
    reply_named_int(reply, "id", req->session->id);
    reply_bulk_text(reply, "mode");
    reply_bulk_text(reply,
                    req->service->cluster != NULL ? "cluster" : "standalone");
    reply_bulk_text(reply, "role");
    reply_bulk_text(reply, req->service->role.replica ? "replica" : "master");
    reply_bulk_text(reply, "modules");
    info_reply_modules(reply);
}

enum err
cmd_hello(struct request *req)
{
    struct hello hello = { 0 };
    enum err err = parse_hello(req, &hello);

    if (err == OK && hello.has_auth) {
        err = authenticate(req, hello.user, hello.password);
    }
    if (err != OK) {
        return err;
    }
    if (!req->session->authenticated) {
        return ERR_NOAUTH_HELLO;
    }
    cmd_client_lock(req);
    if (hello.has_name && !session_set_text(&req->session->name, hello.name)) {
        err = ERR_NOMEM;
    } else {
        req->session->resp = hello.resp;
    }
    cmd_client_unlock(req);
    if (err != OK) {
        return err;
    }
    session_hears(req->session);
    req->reply->resp = hello.resp;
    reply_hello(req);
    return OK;
}
