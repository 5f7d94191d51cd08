/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Short replies wait in one buffer of the loop until the end of its turn, and
 * are then written one after the other. So a turn first makes all its reads and
 * then all its writes. Each of these finds the kernel's code in the CPU's
 * caches, and does not evict our code between two commands. If a turn lasts
 * long, pending_flush_old writes earlier. Replies come from hold.h and leave
 * through the outbox.
 */
#pragma once

#include "net/conn.h"

/* Sends the bytes of `out`, now or at the end of the turn, after the pending
 * replies of the connection, and empties `out`. */
void pending_send(struct conn *conn, struct buf *out);

/* Sends all that is pending; connections may close. */
void pending_flush(struct loop *loop);

/* Flushes if the connection has pending replies. Call it before other output of
 * the connection, and before the connection closes. */
void pending_flush_for(struct conn *conn);

/* Closes a connection after its pending replies are written. */
void pending_close(struct conn *conn);

/* Flushes if, at loop->now_ns, the oldest pending reply has waited too long. */
void pending_flush_old(struct loop *loop);
