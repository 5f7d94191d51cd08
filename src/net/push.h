/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Output that no command of the client caused: what many messages bring one
 * client in one callback is gathered and leaves in one write. Who adds flushes
 * before the callback returns, so that a push never stands before a reply that
 * was written earlier, nor outlives a close. All of it on the loop's thread.
 */
#pragma once

#include "net/conn.h"

/* Behind all output so far, not to be seen before *released is at hold_until.
 * Whole values only. May close the connection. */
void push_add(struct conn *conn, struct slice bytes, uint64_t hold_until);

/* Hands over what was gathered; whoever leaves more than its hard limit unread,
 * or waiting for the disk, is cut. */
void push_flush(struct loop *loop);
