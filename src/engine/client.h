/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client: its connection and its session in one allocation. Owned by its
 * loop; gateway.h makes and ends it. Its description is the line that CLIENT
 * LIST and ACL LOG show.
 */
#pragma once

#include "base/buf.h"
#include "engine/session.h"
#include "net/conn.h"

struct client {
    struct conn conn; /* must be the first: client_of() */
    struct session session;
};

/* 896 is a size class of jemalloc; the next one is 1024. */
_Static_assert(sizeof(struct client) <= 896, "memory of idle connections");

static inline struct client *
client_of(struct conn *conn)
{
    return (struct client *)conn;
}

struct command;

/* Writes the flags of a client's line, "N" if it has none, and a NUL. */
enum { CLIENT_FLAGS_MAX = 11 };
void client_flags(const struct session *session, char *ret_flags);

/* Return for how long the client has been connected, and for how long it has
 * sent nothing. */
uint64_t client_age_s(const struct session *session, uint64_t now_ms);
uint64_t client_idle_s(const struct session *session, uint64_t now_ms);

/* Appends the line of one client with its line feed, as of now_ms. Needs the
 * registry's lock if the session belongs to another loop. running: the command
 * that this session runs now, if the caller runs in it; else NULL. */
void client_line(struct buf *text, const struct session *session,
                 const struct command *running, uint64_t now_ms);
