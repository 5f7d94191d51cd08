/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dials a link: looks a name up and connects, or connects to a unix socket.
 */
#pragma once

#include "net/link.h"

/* Looks the host up and connects to its addresses, one after the other until
 * one answers, all within timeout_ms. Never returns NULL: `closed` reports what
 * goes wrong. Bytes that are sent before the link is open leave when it opens.
 */
struct link *link_dial(struct loop *loop, const char *host, unsigned port,
                       unsigned timeout_ms, const struct link_hooks *hooks,
                       void *ctx);

/* Does the same for a unix socket. */
struct link *link_dial_unix(struct loop *loop, const char *path,
                            unsigned timeout_ms, const struct link_hooks *hooks,
                            void *ctx);
