/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the CLIENT commands share: the lock under which CLIENT LIST reads a
 * session from other loops, the check of texts, and the types of clients. Any
 * loop.
 */
#pragma once

#include "engine/client.h"
#include "engine/request.h"

/* Take and release the registry's lock, under which fields that other loops
 * read are changed. They do nothing if the session has no connection. */
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
