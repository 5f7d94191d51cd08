/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What loop.c, outbox.c and hold.c need of conn.c.
 */
#pragma once

#include "net/conn.h"

/* Reads exactly while nothing has to wait; closes what is finished. */
void conn_settle(struct conn *conn);

/* The outbox shrank or is gone: goes on with what had to wait. */
void conn_sent(struct conn *conn);

/* Calls execute again for every connection that asked for it. */
void conn_resume_all(struct loop *loop);

/* All that are parked are to be resumed soon; those that wait for room if there
 * is some, or in any case. */
void conn_unpark_all(struct loop *loop);
void conn_unpark_for_room(struct loop *loop);

/* Held output went out: what had to wait for that goes on, soon. */
void conn_released(struct conn *conn);

/* Closes it, and says in the log that memory was short for its replies. */
void conn_cut_no_memory(struct conn *conn);
