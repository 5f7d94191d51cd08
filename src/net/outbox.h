/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The replies that a socket did not take: one write under way and one buffer
 * that gathers what comes meanwhile (libuv sends one queued request a tick, so
 * many small ones would crawl). Exists only while something is unsent. Output
 * comes through hold.h, which knows what may be sent.
 */
#pragma once

#include "net/conn.h"

/* Sends what is in `out` (behind anything unsent) and leaves it empty. */
void outbox_send(struct conn *conn, struct buf *out);

/* The same for what was held: the hard limit does not cut, since so much came
 * together for want of our disk, and the client had no chance to take it. */
void outbox_send_held(struct conn *conn, struct buf *out);

/* Counts what is unsent and held anew, sees since when it is above the soft
 * limit, and whether so much is held (conn->full) that nothing more is to be
 * read or executed. Returns the bytes that are unsent. */
size_t outbox_count(struct conn *conn);

/* The memory of what is unsent. */
size_t outbox_memory_bytes(const struct conn *conn);

/* Unsent bytes are above the soft limit for longer than allowed; or the
 * connection only waits for its last replies to be taken, and nothing has been
 * for as long. Held bytes are not unsent. now_ms is uv_now. */
bool outbox_is_overdue(struct conn *conn, uint64_t now_ms);

/* The client has taken something since this was asked last. */
bool outbox_moved(struct conn *conn);

/* Closes it for want of being read: counted, and said in the log. */
void outbox_cut(struct conn *conn, size_t bytes);

/* In the close callback: frees what was never sent. */
void outbox_free(struct conn *conn);
