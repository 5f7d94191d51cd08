/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pushes: output that no command of the client caused. The pushes of a
 * connection are gathered and leave in one write. The loop sends them in
 * pieces, since thousands of connections may have some. A reply never overtakes
 * an earlier push: serve.c sends the pushes of its connection first. On the
 * loop's thread.
 */
#pragma once

#include "net/conn.h"

/* Adds a push behind all output so far, held until *released is at hold_until.
 * It must be whole values. May close the connection, or another one. */
void push_add(struct conn *conn, struct slice bytes, uint64_t hold_until);

/* Sends the pushes of one connection, if it has some. May close it. */
void push_send_now(struct conn *conn);
static inline void
push_send_for(struct conn *conn)
{
    if (conn->pushed_at != NULL) {
        push_send_now(conn);
    }
}

/* Sends what was gathered, for some connections at least. Returns false when
 * until_ns has passed and some are left. Cuts a connection with more than its
 * hard limit unread or held. */
bool push_flush(struct loop *loop, uint64_t until_ns);
