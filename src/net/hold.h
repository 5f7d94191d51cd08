/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies that tell of what a crash could still take away wait here until the
 * journal has released it: until *loop->released is at conn->hold_until. A
 * connection's output stays in order, so whatever comes behind held output is
 * held too. All of it on the loop's thread.
 */
#pragma once

#include "net/conn.h"

#include <stdatomic.h>

/* The entrance of all output of a connection: sends what is in `out` or holds
 * it, and leaves it empty. Whole replies only. May close the connection. */
void hold_send(struct conn *conn, struct buf *out);

/* Goes through the loop's connections with held output: sends what is released
 * by now, or what takes its place when the environment gives up. */
void hold_look(struct loop *loop);

/* When the connection closes: nothing is held any more. Memory stays until
 * hold_free in the close callback. */
void hold_drop(struct conn *conn);
void hold_free(struct conn *conn);

/* The memory of what is held, or was. */
size_t hold_memory_bytes(const struct conn *conn);

/* Once a second: gives the memory of who has not needed it since back. */
void hold_trim(struct conn *conn);
