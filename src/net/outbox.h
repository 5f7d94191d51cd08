/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sends output: writes directly, and keeps what the socket did not take. One
 * write is under way and one buffer gathers what comes meanwhile, since libuv
 * sends one queued request a loop turn, so that many small ones would be slow.
 * conn->outbox exists only while something is unsent.
 */
#pragma once

#include "net/conn.h"

/* Sends what is in `out` behind anything unsent, and empties it. Cuts a
 * connection that leaves more than its hard limit unread. */
void outbox_send(struct conn *conn, struct buf *out);

/* Sends output that hold.h has held back. The hard limit does not apply: the
 * output grew while it waited for our disk, and the client could not read it
 * earlier. */
void outbox_send_held(struct conn *conn, struct buf *out);

/* Sends the records in loop->sealed, which the connection's tls_open has made,
 * behind those that are unsent, and empties the buffer. */
void outbox_send_sealed(struct conn *conn);

/* Returns whether unsent bytes were above the soft limit for too long, or the
 * connection is leaving and its client has taken nothing for that time. Held
 * bytes do not count. now_ms is uv_now. */
bool outbox_is_overdue(struct conn *conn, uint64_t now_ms);

/* Returns whether the client has taken something since the last call. */
bool outbox_moved(struct conn *conn);

/* Closes the connection because of unread replies; this is counted and logged.
 */
void outbox_cut(struct conn *conn, size_t bytes);
