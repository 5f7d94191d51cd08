/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Short replies wait for the end of the loop's turn and then go out one after
 * the other: as all reads of a turn find the kernel's way in in the caches, so
 * do all writes find its way out, and our own code is not pushed out by it
 * between two commands. They wait in one buffer of the loop, and never long.
 * What hold.h lets through comes here, and goes on to the outbox.
 */
#pragma once

#include "net/conn.h"

/* Sends what is in `out`, now or at the end of the turn, behind anything that
 * is pending, and leaves it empty. */
void pending_send(struct conn *conn, struct buf *out);

/* Sends all that is pending; connections may close. */
void pending_flush(struct loop *loop);

/* The same, if the connection has some of it: before anything else of it goes
 * out, or nothing more can. */
void pending_flush_for(struct conn *conn);

/* The same, if the oldest has waited for long at loop->now_ns. */
void pending_flush_old(struct loop *loop);
