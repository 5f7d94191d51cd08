/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What loop.c and outbox.c need of conn.c.
 */
#pragma once

#include "net/conn.h"

/* Cuts the connection if it has been idle, or has left its replies unread, for
 * too long. Once a second. */
void conn_check_timeouts(struct conn *conn);

/* The outbox shrank or is gone: goes on with what had to wait. */
void conn_sent(struct conn *conn);

/* Calls execute again for every connection that asked for it. */
void conn_resume_all(struct loop *loop);
