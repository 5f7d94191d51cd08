/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client: its connection and its session in one allocation, and the hooks
 * that join net to dispatch. Owned by its loop.
 */
#pragma once

#include "engine/session.h"
#include "net/conn.h"

struct client {
    struct conn conn; /* first: a conn is its client */
    struct session session;
};

static inline struct client *
client_of(struct conn *conn)
{
    return (struct client *)conn;
}

/* What a loop calls; loop->owner is its struct worker. */
extern const struct conn_handler client_handler;
