/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How long a client may take: to give the password, to finish a request that it
 * has begun, to read its replies, to do anything at all, and to be found gone.
 * Looked at once a second, on the connection's loop.
 *
 * A request has request-timeout seconds, and one more for each
 * request-min-rate bytes of it that have come, so that a large one may take its
 * time and a trickle may not. Only whole seconds in which the server was
 * reading count: not while the client's earlier command waits or its replies
 * are held, and a loop that was busy for long has looked once, not many times.
 */
#pragma once

#include "net/conn.h"

/* Cuts the connection if its client has gone or takes too long. Once a
 * second. */
void timeouts_check(struct conn *conn);
