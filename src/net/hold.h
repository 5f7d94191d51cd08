/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Holds back output that depends on changes which a crash could still lose,
 * until the journal has released them: until *loop->released is at
 * conn->hold_until. Output stays in order, so everything behind held output is
 * held too. "Held" means this and nothing else in net. All functions are called
 * on the loop's thread.
 */
#pragma once

#include "net/conn.h"

/* Sends what is in `out`, or holds it, and empties `out`. All output of a
 * connection passes here. `out` must have whole replies only. May close the
 * connection. */
void hold_send(struct conn *conn, struct buf *out);

/* Sends the held output of all connections that is released by now, or what
 * takes its place when the environment gives up. Returns false when until_ns
 * has passed: then some may be left for another call. */
bool hold_release(struct loop *loop, uint64_t until_ns);

/* Frees the connection's memory for held output if it was not used since the
 * last call. Called once a second. */
void hold_trim(struct conn *conn);
