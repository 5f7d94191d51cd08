/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The checks before a command runs, in Redis's order, with its texts.
 */
#include "command/admit.h"

#include "command/txn.h"

#include <stdio.h>

enum { SHOWN_BYTES_MAX = 128 /* of an unknown command and its arguments */ };

/* ---- the request --------------------------------------------------------- */

/* How many bytes of a client's word to show; printf stops at a NUL, too. */
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
        shown(req->argv[0], SHOWN_BYTES_MAX), req->argv[0].data);
    size_t before = len;

    for (size_t i = 1; i < req->argc && len - before < SHOWN_BYTES_MAX; i++) {
        size_t left = SHOWN_BYTES_MAX - (len - before);

        len += (size_t)snprintf(to + len, size - len, "'%.*s' ",
                                shown(req->argv[i], left), req->argv[i].data);
    }
    return ERR_UNKNOWN_COMMAND;
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
    return request_fail(req, ERR_UNKNOWN_SUB,
                        "unknown subcommand '%.*s'. Try %s HELP.",
                        shown(sub, SHOWN_BYTES_MAX), sub.data, name);
}

/* What is checked of every command, run or queued, in Redis's order. */
enum err
admit_request(struct request *req, unsigned words)
{
    const struct command *command = req->command;
    struct session *session = req->session;

    if (command == NULL) {
        return words == 2 ? unknown_subcommand(req) : unknown_command(req);
    }
    if (!command_arity_fits(command, req->argc)) {
        return request_fail(req, ERR_ARITY, "%s", command->name);
    }
    if (!session->authenticated && (command->flags & CMD_NO_AUTH) == 0) {
        return ERR_NOAUTH;
    }
    if (txn_is_open(session) && (command->flags & CMD_NO_MULTI) != 0) {
        return ERR_NOT_ALLOWED_IN_TXN;
    }
    return OK;
}

/* ---- the moment ---------------------------------------------------------- */

/* What the server cannot do now, in Redis's order: memory, disk, loading. */
enum err
admit_now(const struct request *req)
{
    const struct command *command = req->command;
    const struct service *service = req->service;
    uint32_t flags = command->flags;
    enum err err = OK;

    if (req->obey) {
        return OK;
    }
    if (command->handler == cmd_exec) {
        flags |= txn_flags(req->session);
    } else if (txn_is_open(req->session) && command->handler != cmd_discard &&
               command->handler != cmd_quit && command->handler != cmd_reset) {
        flags |= CMD_DENYOOM; /* Redis queues nothing then */
    }
    if ((flags & CMD_DENYOOM) != 0 && admit_is_out_of_memory(service)) {
        return ERR_OOM;
    }
    if ((flags & CMD_WRITE) != 0) {
        err = admit_writes(service);
    } else if (command->handler == cmd_ping) {
        err = admit_refusal(&service->ping_refusal);
    }
    /* WATCH looks at keys, which belong to the loader alone. */
    if (err == OK && admit_is_loading(service) &&
        ((flags & CMD_LOADING) == 0 || command->lock == LOCK_KEYS)) {
        err = ERR_LOADING;
    }
    return err;
}
