/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The checks have Redis's order and texts.
 */
#include "engine/admit.h"

#include "base/metrics.h"
#include "engine/dialect.h"
#include "engine/pause.h"
#include "engine/refusal.h"
#include "engine/rights.h"
#include "engine/room.h"
#include "engine/route.h"
#include "engine/txn.h"
#include "net/conn.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- the request --------------------------------------------------------- */

/* Returns how many bytes of a client's word to show. printf also stops at a
 * NUL. */
static int
shown(struct slice word, size_t max)
{
    return (int)(word.len < max ? word.len : max);
}

static enum err
unknown_command(struct request *req)
{
    char *to = req->worker->detail;
    size_t size = sizeof(req->worker->detail);
    size_t len = (size_t)snprintf(
        to, size, "unknown command '%.*s', with args beginning with: ",
        slice_shown(req->argv[0]), req->argv[0].data);
    size_t before = len;

    for (size_t i = 1; i < req->argc && len - before < SLICE_SHOWN_MAX; i++) {
        size_t left = SLICE_SHOWN_MAX - (len - before);

        len += (size_t)snprintf(to + len, size - len, "'%.*s' ",
                                shown(req->argv[i], left), req->argv[i].data);
    }
    return ERR_UNKNOWN_COMMAND;
}

/* Returns whether nobody shall know of the command, which may be NULL, or of
 * its container (option disabled-commands). Commands of a log still run. */
static bool
is_disabled(const struct request *req, unsigned words)
{
    const struct command *command = req->command != NULL ? req->command
                                    : words == 2 ? command_find(req->argv[0])
                                                 : NULL;

    return command != NULL && !req->obey && command_is_forbidden(command->id);
}

static enum err
unknown_subcommand(struct request *req)
{
    const struct command *container = command_find(req->argv[0]);
    struct slice sub = req->argv[1];
    char name[32];
    size_t i = 0;

    for (; container->name[i] != '\0' && i < sizeof(name) - 1; i++) {
        name[i] = (char)(container->name[i] & ~0x20); /* letters only */
    }
    name[i] = '\0';
    if (container->id == CMD_ID_CLIENT) {
        metric_add(METRIC_UNKNOWN_CLIENT_WORDS, 1);
    }
    return request_fail(req, ERR_UNKNOWN_SUB,
                        "unknown subcommand '%.*s'. Try %s HELP.",
                        slice_shown(sub), sub.data, name);
}

static bool
is_for_subscribers(const struct command *command)
{
    switch (command_id(command)) {
    case CMD_ID_SUBSCRIBE:
    case CMD_ID_PSUBSCRIBE:
    case CMD_ID_SSUBSCRIBE:
    case CMD_ID_UNSUBSCRIBE:
    case CMD_ID_PUNSUBSCRIBE:
    case CMD_ID_SUNSUBSCRIBE:
    case CMD_ID_BF_SUBSCRIBE:
    case CMD_ID_BF_UNSUBSCRIBE:
    case CMD_ID_PING:
    case CMD_ID_QUIT:
    case CMD_ID_RESET:
        return true;
    default:
        return false;
    }
}

/* The option never changes, so it is read outside the gate. */
static bool
may_debug(const struct request *req)
{
    const struct conn *conn = req->session->conn;

    switch ((enum conf_debug_command)req->service->conf->enable_debug_command) {
    case CONF_DEBUG_COMMAND_NO:
        return false;
    case CONF_DEBUG_COMMAND_LOCAL:
        return conn == NULL || address_peer_is_local(conn->fd);
    case CONF_DEBUG_COMMAND_YES:
        break;
    }
    return true;
}

enum err
admit_request(struct request *req, unsigned words)
{
    const struct command *command = req->command;
    struct session *session = req->session;

    if (is_disabled(req, words)) {
        return unknown_command(req);
    }
    if (command == NULL) {
        return words == 2 ? unknown_subcommand(req) : unknown_command(req);
    }
    if (req->obey ? !command_arity_fits(command, req->argc)
                  : !dialect_arity_fits(req->service, command, req->argc)) {
        return request_fail(req, ERR_ARITY, "%s",
                            dialect_command_name(req->service, command));
    }
    if (command->id == CMD_ID_DEBUG && !may_debug(req)) {
        return request_fail(
            req, ERR_CUSTOM,
            "DEBUG command not allowed. If the enable-debug-command option is "
            "set to \"local\", you can run it from a local connection, "
            "otherwise you need to set this option in the configuration file, "
            "and then restart the server.");
    }
    if (!session->authenticated && (command->flags & CMD_NO_AUTH) == 0) {
        return ERR_NOAUTH;
    }
    if (txn_is_open(session) && (command->flags & CMD_NO_MULTI) != 0) {
        return ERR_NOT_ALLOWED_IN_TXN;
    }
    if (session->subscribed && !is_for_subscribers(command)) {
        return request_fail(req, ERR_SUBSCRIBED, "%s",
                            dialect_command_name(req->service, command));
    }
    if (session->receiver.monitors &&
        (command->flags & (CMD_WRITE | CMD_READONLY)) != 0) {
        return ERR_MONITORS;
    }
    return OK;
}

/* ---- the moment ---------------------------------------------------------- */

/* Makes a session wait for room, or for the end of a pause: only these wake it,
 * not every event (gateway_has_room). */
static enum err
wait_for_room(struct session *session)
{
    session->wait = CONN_FOR_ROOM;
    return ERR_AGAIN;
}

/* Commands that an operator needs to end a pause from a new connection, with a
 * client library that names itself. None of them changes data. */
static bool
ends_pauses(const struct command *command)
{
    return (command->flags & CMD_NO_AUTH) != 0 ||
           command->id == CMD_ID_CLIENT_PAUSE ||
           command->id == CMD_ID_CLIENT_UNPAUSE ||
           command->id == CMD_ID_CLIENT_SETINFO ||
           command->id == CMD_ID_CLIENT_SETNAME;
}

static bool
is_paused(const struct request *req, uint32_t flags)
{
    const struct conn *conn = req->session->conn;

    if (!pause_waits(req->service, flags) || ends_pauses(req->command)) {
        return false;
    }
    return conn == NULL || !conn->is_reserved ||
           pause_waits_operator(req->service, flags);
}

/* Returns whether a command with these flags may produce notices while an inbox
 * is nearly full. */
static bool
is_too_loud(const struct request *req, uint32_t flags)
{
    const struct service *service = req->service;
    uint32_t loud = CMD_WRITE | CMD_MAY_REPLICATE;
    bool shown = (observed_by(service) & OBSERVED_MONITOR) != 0 &&
                 (flags & (CMD_SKIP_MONITOR | CMD_ADMIN)) == 0;

    if (req->session->receiver.tracker != NULL) {
        loud |= CMD_READONLY; /* remembering a read may evict another one */
    }
    return inboxes_are_crowded(service->inboxes) &&
           (shown || (flags & loud) != 0);
}

/* Returns the flags of the command; for EXEC, only the flags that EXEC and all
 * queued commands have. WATCH reads keys, so it does not get CMD_LOADING: it
 * must not run while data is absent. */
static uint32_t
flags_for_data(const struct request *req)
{
    const struct command *command = req->command;
    uint32_t flags = command->flags;

    if (command->lock == LOCK_KEYS) {
        flags &= ~(uint32_t)CMD_LOADING;
    }
    return command->id == CMD_ID_EXEC ? flags & txn_common_flags(req->session)
                                      : flags;
}

/* A replica redirects a client that follows redirects (CLIENT CAPA) to its
 * primary: for writes, and, until READONLY, for reads. */
static enum err
redirect_check(const struct request *req)
{
    const struct service *service = req->service;
    const struct session *session = req->session;
    uint32_t flags = req->command->flags;

    if (!service->role.replica || !session->follows_redirects ||
        service->cluster != NULL) {
        return OK;
    }
    if (req->command->id == CMD_ID_EXEC) {
        flags |= txn_flags(session);
    }
    if ((flags & CMD_WRITE) == 0 &&
        ((flags & CMD_READONLY) == 0 || session->reads_replica)) {
        return OK;
    }
    (void)snprintf(req->worker->detail, sizeof(req->worker->detail),
                   "%.255s:%" PRIu32, service->role.host, service->role.port);
    return ERR_REDIRECT;
}

/* Admits by all rules. */
static enum err
admit_by_all(const struct request *req, bool routes)
{
    const struct command *command = req->command;
    const struct service *service = req->service;
    uint32_t flags = command->flags;
    enum err err = command->id >= CMD_ID_LISTED ? ERR_SCRIPTS
                   : routes && route_is_on(req) ? route_check(req)
                                                : OK;

    if (err == OK) {
        err = redirect_check(req);
    }
    if (err != OK) {
        return err;
    }
    if (command->id == CMD_ID_EXEC) {
        flags |= txn_flags(req->session);
    } else if (txn_is_open(req->session) && command->id != CMD_ID_DISCARD &&
               command->id != CMD_ID_QUIT && command->id != CMD_ID_RESET) {
        flags |= CMD_DENYOOM; /* Redis queues nothing while memory is full */
    }
    /* During a pause nothing is evicted either. */
    if ((flags & CMD_DENYOOM) != 0 &&
        (!pause_is_on(service) || !is_paused(req, flags))) {
        err = room_admit(req->worker);
    }
    if (err != OK) {
        return err;
    }
    if ((flags & CMD_WRITE) != 0) {
        err = refusal_of_writes(service);
    } else if (command->id == CMD_ID_PING) {
        err = refusal_of_ping(service);
    }
    if (err == OK) {
        err = refusal_of_data(service, flags_for_data(req));
    }
    /* WATCH looks at keys, which belong to the loader alone. */
    if (err == OK && refusal_is_loading(service) &&
        ((flags & CMD_LOADING) == 0 || command->lock == LOCK_KEYS)) {
        err = ERR_LOADING;
    }
    if (err == OK && (is_paused(req, flags) || is_too_loud(req, flags))) {
        err = wait_for_room(req->session);
    }
    return err;
}

/* Returns whether no observer can make a command wait: there is none, or only
 * subscribers of filters, whose inboxes have room. OBSERVED_ROUTES counts as
 * one. */
static bool
observers_have_room(const struct service *service)
{
    uint64_t observed =
        atomic_load_explicit(&service->observed, memory_order_relaxed);

    return __builtin_expect(observed == 0, 1) ||
           (observed == OBSERVED_FILTERS &&
            !inboxes_are_crowded(service->inboxes));
}

/* Returns whether only memory and the disk can prevent the command. That is so
 * for most commands: they use data, outside MULTI, while no observer can make
 * them wait, nothing is paused or loading, no slots are checked, and the role
 * refuses nothing. */
static bool
is_usual(const struct request *req)
{
    const struct service *service = req->service;

    return (req->command->flags & (CMD_READONLY | CMD_WRITE)) != 0 &&
           req->session->txn == NULL && observers_have_room(service) &&
           !refusal_is_loading(service) && refusal_is_none(service);
}

/* routes: whether the slots of its keys are checked, too. */
static inline enum err
admit_by(const struct request *req, bool routes)
{
    uint32_t flags = req->command->flags;
    enum err err = OK;

    if (req->obey) {
        return OK;
    }
    if (__builtin_expect(!is_usual(req), 0)) {
        return admit_by_all(req, routes);
    }
    if ((flags & CMD_DENYOOM) != 0) {
        err = room_admit(req->worker);
    }
    return err == OK && (flags & CMD_WRITE) != 0
               ? refusal_in(&req->service->write_refusal)
               : err;
}

enum err
admit_now(const struct request *req)
{
    enum err err = OK;

    if (!req->obey && __builtin_expect(rights_are_limited(req->session), 0)) {
        err = rights_check(req);
    }
    return err == OK ? admit_by(req, true) : err;
}

enum err
admit_by_state(const struct request *req)
{
    return admit_by(req, false);
}
