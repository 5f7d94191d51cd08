/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the commands on connections share: the lock under which CLIENT LIST
 * reads a session from other loops, the check of texts, and what describes one
 * client. Any loop.
 */
#pragma once

#include "engine/client.h"
#include "engine/request.h"

/* The registry's lock, for changing what other loops read. Nothing when the
 * session has no connection. */
void cmd_client_lock(struct request *req);
void cmd_client_unlock(struct request *req);

/* Refuses texts that a line of CLIENT LIST could not hold; what names them in
 * the error. */
enum err cmd_client_check_text(struct request *req, const char *what,
                               struct slice text);

/* As LIST and KILL tell clients apart. Who monitors is a normal client, as in
 * Redis; the last two are links (links.h). */
enum client_type {
    CLIENT_NORMAL,
    CLIENT_PUBSUB,
    CLIENT_MASTER,
    CLIENT_REPLICA
};

/* Fails with an error that names the type. */
enum err cmd_client_parse_type(struct request *req, struct slice type,
                               enum client_type *ret_type);
enum client_type cmd_client_type(const struct session *session);

/* The flags of a client's line, "N" if it has none, with a NUL behind. */
enum { CMD_CLIENT_FLAGS_MAX = 10 };
void cmd_client_flags(const struct session *session, char *ret_flags);

/* For how long it is there, and has sent nothing. */
uint64_t cmd_client_age_s(const struct session *session, uint64_t now_ms);
uint64_t cmd_client_idle_s(const struct session *session, uint64_t now_ms);

/* Appends the line of one client, its line feed included, as of now_ms. For a
 * session of another loop: under the registry's lock. running: for the calling
 * session the command that it runs, else NULL. */
void cmd_client_line(struct buf *text, const struct session *session,
                     const struct command *running, uint64_t now_ms);
