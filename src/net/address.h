/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The two ends of a socket as texts, as CLIENT LIST shows them: "ip:port",
 * "[ip6]:port", or "path:0" for a unix socket, whose two ends are both called
 * by the path that was bound. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { ADDRESS_TEXT_MAX = 128 };

void address_peer(int fd, bool is_unix, char *ret_text);
void address_local(int fd, bool is_unix, char *ret_text);

/* The far end without its port; of a unix socket, the path. */
void address_peer_host(int fd, bool is_unix, char *ret_text);

/* Who is behind the far end, as far as the network says: an IPv4 address, the
 * first 64 bits of an IPv6 one, or the unix socket (all of them zeros). */
enum { ADDRESS_SOURCE_BYTES = 16 };
void address_source(int fd, bool is_unix,
                    uint8_t ret_source[ADDRESS_SOURCE_BYTES]);
