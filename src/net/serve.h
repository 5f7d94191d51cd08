/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Serves connections: reads, parses, executes batches through the handler, and
 * hands the replies to hold.h. A connection is read from exactly while it does
 * not have to wait.
 *
 * A connection that is not read from is checked once a second (timeouts.h), so
 * that a client that has gone does not keep its place while a command waits. A
 * client that has only ended its own half of the socket, which for TCP looks
 * like a close, still gets the replies that it is owed: for a minute if they
 * wait for the disk or for room in the journal. A command that waits for
 * something else is given up after a second or two, as Redis does with blocked
 * clients.
 */
#pragma once

#include "net/conn.h"

/* How a client came in. */
enum { SERVE_UNIX = 1, SERVE_RESERVED = 2, SERVE_TLS = 4 };

/* Opens a connection for an accepted descriptor, for which registry_reserve has
 * found a place (PLACE_RESERVED with SERVE_RESERVED). On failure the descriptor
 * is closed and the owner is freed through the closed hook. On the loop's
 * thread. */
void serve_open(struct loop *loop, int fd, unsigned how);

/* Takes the socket out of the connection, which closes without the client
 * noticing, and returns a new descriptor of it (for net/link.h). Returns -1 if
 * bytes of the client or replies still wait here, or without descriptors; the
 * connection then stays open.
 *
 * It must be the last call in execute: the last command of the batch has been
 * executed, its reply, if any, is in loop->reply, and hold_until is raised.
 * Sends loop->reply. The batch and its arguments are invalid afterwards.
 * *ret_tls opens and seals the bytes of the socket, and the caller owns it;
 * NULL for plain bytes. */
int serve_detach(struct conn *conn, struct tls **ret_tls);

/* Asks the loop to close the connection with this id. Returns false if its
 * mailbox is full. Any thread. */
bool serve_kill(struct loop *loop, uint64_t id);

/* Serves connections in loop->resumable, for a bounded time; those that ask for
 * another turn get it at the next call. */
void serve_resume_all(struct loop *loop);
