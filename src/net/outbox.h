/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The replies that a socket did not take: one write under way and one buffer
 * that gathers what comes meanwhile (libuv sends one queued request a tick, so
 * many small ones would crawl). Exists only while something is unsent.
 */
#pragma once

#include "net/conn.h"

/* Above the soft limit: nothing more is read or executed. */
bool outbox_is_over_soft(const struct conn *conn);

/* Above it for longer than the limit allows. now_ms is uv_now. */
bool outbox_is_overdue(struct conn *conn, uint64_t now_ms);

/* In the close callback: frees what was never sent. */
void outbox_free(struct conn *conn);

/* conn.c: the outbox shrank or is gone. */
void conn_sent(struct conn *conn);
