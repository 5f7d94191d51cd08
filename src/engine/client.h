/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client: its connection and its session in one allocation. Owned by its
 * loop; gateway.h makes and ends it.
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
