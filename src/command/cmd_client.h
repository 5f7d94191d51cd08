/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the CLIENT commands share: the lock under which CLIENT LIST reads a
 * session from other loops, the check of texts, and the description of one
 * client. Any loop.
 */
#pragma once

#include "engine/client.h"
#include "engine/request.h"

/* Take and release the registry's lock, under which what other loops read
 * changes. Nothing if the session has no connection. */
void cmd_client_lock(struct request *req);
void cmd_client_unlock(struct request *req);

/* Refuses texts that may not stand in a line of CLIENT LIST. `what` names the
 * text in the error. */
enum err cmd_client_check_text(struct request *req, const char *what,
                               struct slice text);

/* The types of clients for LIST and KILL. A client in MONITOR is a normal one,
 * as in Redis; the last two are links (links.h). */
enum client_type {
    CLIENT_NORMAL,
    CLIENT_PUBSUB,
    CLIENT_MASTER,
    CLIENT_REPLICA
};

/* Parses a type. Fails with an error that quotes it. */
enum err cmd_client_parse_type(struct request *req, struct slice type,
                               enum client_type *ret_type);
enum client_type cmd_client_type(const struct session *session);

/* Writes the flags of a client's line, "N" if it has none, and a NUL. */
enum { CMD_CLIENT_FLAGS_MAX = 10 };
void cmd_client_flags(const struct session *session, char *ret_flags);

/* Return how long the client has been connected, and has sent nothing. */
uint64_t cmd_client_age_s(const struct session *session, uint64_t now_ms);
uint64_t cmd_client_idle_s(const struct session *session, uint64_t now_ms);

/* Appends the line of one client with its line feed, as of now_ms. Under the
 * registry's lock for a session of another loop. running: the command that
 * runs, if it is the calling session, else NULL. */
void cmd_client_line(struct buf *text, const struct session *session,
                     const struct command *running, uint64_t now_ms);
