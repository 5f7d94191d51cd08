/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLIENT ID GETNAME SETNAME SETINFO INFO NO-EVICT NO-TOUCH CAPA REPLY. Each
 * runs on the loop of its connection; fields that other loops read are changed
 * under the registry's lock.
 */
#include "command/cmd_client.h"

#include "access/handlers.h"
#include "net/registry.h"

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

    client_line(&text, req->session, req->command, req->now_ms);
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

/* Ignores unknown capabilities, since later clients may have some. */
enum err
cmd_client_capa(struct request *req)
{
    for (size_t i = 2; i < req->argc; i++) {
        if (slice_is_word(req->argv[i], "redirect")) {
            cmd_client_lock(req);
            req->session->follows_redirects = true;
            cmd_client_unlock(req);
        }
    }
    reply_ok(req->reply);
    return OK;
}

enum err
cmd_client_import_source(struct request *req)
{
    return request_fail(req, ERR_CUSTOM, "Server is not in import mode");
}

/* Dispatch drops the replies. OFF and SKIP themselves have no reply. */
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
