/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connects a client (client/client.h): to a host or a path, and with TLS. A
 * function that returns false has set the client's fault. The lookup of a name
 * may take longer than the deadline.
 */
#pragma once

#include "client/client.h"

struct tls_contexts;

/* Dials the addresses of a host one after the other until one answers; each
 * gets its share of the time that is left. port: a number, or the name of a
 * service. If none answers, client->fault tells of the last one. */
bool client_dial_host(struct client *client, const char *host, const char *port,
                      uint64_t deadline_ns);

bool client_dial_path(struct client *client, const char *path,
                      uint64_t deadline_ns);

/* Does the TLS handshake; host: what the certificate must be for. */
bool client_dial_tls(struct client *client, struct tls_contexts *contexts,
                     const char *host, uint64_t deadline_ns);

/* Begins to dial one of the addresses of a host, and with TLS the handshake,
 * for a thread that polls (client_prepare, client_receive). which: selects the
 * address, modulo their number. Commands may be queued at once; a server that
 * is not there is a fault of the first read. */
bool client_dial_begin(struct client *client, const char *host,
                       const char *port, struct tls_contexts *contexts,
                       unsigned which);
