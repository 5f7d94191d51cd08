/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sidecar mode: connects the neighbour (neighbour.h) with the state machine
 * (cluster/lease.h), and publishes its views and its lease to all loops. On
 * loop 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct server;

enum { SIDECAR_MODE_REASON_MAX = 512 };

/* Prepares the mode if sidecar-of is set: before the keyspace is made, since
 * hashes of keys then have their slots. False: an option is malformed. */
bool sidecar_mode_init(struct server *server,
                       char ret_reason[SIDECAR_MODE_REASON_MAX]);
void sidecar_mode_fini(struct server *server);

/* All do nothing without sidecar-of. */
void sidecar_mode_start(struct server *server);
void sidecar_mode_stop(struct server *server);
