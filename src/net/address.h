/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The two ends of a socket as texts, as CLIENT LIST shows them: "ip:port",
 * "[ip6]:port", or "path:0" for a unix socket, whose two ends are both called
 * by the path that was bound. Any thread.
 */
#pragma once

#include <stdbool.h>

enum { ADDRESS_TEXT_MAX = 128 };

void address_peer(int fd, bool is_unix, char *ret_text);
void address_local(int fd, bool is_unix, char *ret_text);

/* The far end without its port; of a unix socket, the path. */
void address_peer_host(int fd, bool is_unix, char *ret_text);
