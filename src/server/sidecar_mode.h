/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sidecar mode: connects the neighbour (neighbour.h), the state machine
 * (cluster/sidecar.h) and other daemons (colleague.h) with the rest of the
 * server, and publishes views and leases to all loops. On loop 0, unless a line
 * says otherwise.
 */
#pragma once

#include "base/slot_set.h"

#include <stdbool.h>
#include <stddef.h>

struct conf;
struct server;

enum { SIDECAR_MODE_REASON_MAX = 512 };

/* Prepares the mode if sidecar-of is set: before the keyspace is made, since
 * hashes of keys then have their slots. False: an option is malformed. */
bool sidecar_mode_init(struct server *server,
                       char ret_reason[SIDECAR_MODE_REASON_MAX]);
void sidecar_mode_fini(struct server *server);

/* Whether these options are good, but for those that are read at a start only.
 * If not, says why. */
bool sidecar_mode_allows(const struct conf *conf, char *ret_reason,
                         size_t reason_size);

/* All below do nothing without sidecar-of. */

/* Has loop 0 read options that have changed. Under the raised gate. */
void sidecar_mode_apply_conf(struct server *server);

/* Reads what this server held before. Before the loops run; the data directory
 * is locked. False: the reason was logged. */
bool sidecar_mode_open(struct server *server);

/* Writes the file into another data directory, which has the data. */
void sidecar_mode_write_again(struct server *server);

/* The journal has written or synced something. Any thread. */
void sidecar_mode_moved(struct server *server);

void sidecar_mode_start(struct server *server);
void sidecar_mode_stop(struct server *server);

/* Writes what is not written yet. Its thread wakes the loops, so call it before
 * they are freed. */
void sidecar_mode_close(struct server *server);
