/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes a link of a descriptor: of the socket of a client's connection
 * (serve_detach), or of a pipe.
 */
#pragma once

#include "net/link.h"

/* Makes a link of a descriptor: a stream socket, or the read end of a pipe. The
 * link owns it from then on. Returns NULL on failure, with the descriptor
 * closed. */
struct link *link_take(struct loop *loop, int fd,
                       const struct link_hooks *hooks, void *ctx);
