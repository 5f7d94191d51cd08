/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The replies that a socket did not take: one write under way and one buffer
 * that gathers what comes meanwhile (libuv sends one queued request a tick, so
 * many small ones would crawl). Exists only while something is unsent.
 */
#pragma once

#include "net/conn.h"

/* Sends what is in `out` (behind anything unsent) and leaves it empty. */
void outbox_send(struct conn *conn, struct buf *out);

/* Above the soft limit: nothing more is read or executed. */
bool outbox_is_over_soft(const struct conn *conn);

/* Above it for longer than the limit allows; or the connection only waits for
 * its last replies to be taken, and nothing has been for as long. now_ms is
 * uv_now. */
bool outbox_is_overdue(struct conn *conn, uint64_t now_ms);

/* The client has taken something since this was asked last. */
bool outbox_moved(struct conn *conn);

/* In the close callback: frees what was never sent. */
void outbox_free(struct conn *conn);
