/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Short replies wait in one buffer of the loop until the end of its turn, and
 * then go out one write after the other: all reads of a turn, then all writes,
 * find the kernel's code in the caches, and ours is not evicted between two
 * commands. They never wait long. hold.h passes replies on to here, and they go
 * on to the outbox.
 */
#pragma once

#include "net/conn.h"

/* Sends what is in `out`, now or at the end of the turn, behind the pending
 * replies of the connection, and empties it. */
void pending_send(struct conn *conn, struct buf *out);

/* Sends all that is pending; connections may close. */
void pending_flush(struct loop *loop);

/* Flushes if the connection has pending replies: before its other output, or
 * when it is about to close. */
void pending_flush_for(struct conn *conn);

/* Closes a connection behind its pending replies. */
void pending_close(struct conn *conn);

/* Flushes if the oldest reply has waited for long at loop->now_ns. */
void pending_flush_old(struct loop *loop);
