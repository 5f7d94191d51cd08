/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How long a client may take: for the TLS handshake and the password together,
 * to finish a request (or a TLS record) that it has begun, to read its replies,
 * and to send anything at all; and how soon a client that has gone is noticed.
 * Checked once a second, on the connection's loop.
 *
 * A request has request-timeout seconds, and one more for each request-min-rate
 * bytes of it that have come, so that a large one may take longer and a trickle
 * may not. Only seconds count in which the server was reading all the time;
 * seconds in which an earlier command waited, or replies were held, do not
 * count. A loop that was busy for long counts one second.
 */
#pragma once

#include "net/conn.h"

/* Leaves out a time in which the loop stood still, perhaps with the whole
 * process: it does not count against the client. */
void timeouts_excuse(struct conn *conn, uint64_t stalled_ms);

/* Cuts the connection if its client has gone or takes too long. Called once a
 * second. */
void timeouts_check(struct conn *conn);
