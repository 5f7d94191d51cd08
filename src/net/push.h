/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pushes: output that no command of the client caused. The messages that one
 * callback brings a client are gathered and leave in one write. The callback
 * that adds them flushes before it returns, so that a push never overtakes an
 * earlier reply and never outlives its connection. On the loop's thread.
 */
#pragma once

#include "net/conn.h"

/* Adds a push behind all output so far, held until *released is at hold_until.
 * Whole values only. May close the connection. */
void push_add(struct conn *conn, struct slice bytes, uint64_t hold_until);

/* Sends what was gathered. Cuts a connection with more than its hard limit
 * unread or held. */
void push_flush(struct loop *loop);
