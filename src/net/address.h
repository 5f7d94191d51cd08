/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The two ends of a socket as text, as CLIENT LIST shows them: "ip:port",
 * "[ip6]:port", or "path:0" for a unix socket, where both ends show the path
 * that was bound. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { ADDRESS_TEXT_MAX = 128 };

void address_peer(int fd, bool is_unix, char *ret_text);
void address_local(int fd, bool is_unix, char *ret_text);

/* Writes the host of the far end, without the port; for a unix socket, the
 * path. */
void address_peer_host(int fd, bool is_unix, char *ret_text);

/* Returns whether an address is that of a unix socket or of the loopback
 * interface. */
bool address_is_local(const struct sockaddr *address);

/* Returns whether the far end of a connection has such an address. */
bool address_peer_is_local(int fd);

/* Writes the source for which wrong passwords are counted and delayed: an IPv4
 * address, the first 64 bits of an IPv6 address, or zeros for a unix socket. */
enum { ADDRESS_SOURCE_BYTES = 16 };
void address_source(int fd, bool is_unix,
                    uint8_t ret_source[ADDRESS_SOURCE_BYTES]);
