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
struct loop0;
struct replication;
struct sidecar_mode;

enum { SIDECAR_MODE_REASON_MAX = 512 };

/* Prepares the mode if sidecar-of is set. Call it before there are keys, since
 * hashes of keys then include their slots. Without sidecar-of *ret_mode stays
 * NULL, and then all other functions do nothing. False: an option is malformed,
 * or replicaof is set, too. */
bool sidecar_mode_init(const struct loop0 *loop0, struct replication *r,
                       struct sidecar_mode **ret_mode,
                       char ret_reason[SIDECAR_MODE_REASON_MAX]);
void sidecar_mode_fini(struct sidecar_mode *mode);

/* Returns whether these options are good, apart from those that are read only
 * at a start. If not, writes the reason. */
bool sidecar_mode_allows(const struct conf *conf, char *ret_reason,
                         size_t reason_size);

/* Makes loop 0 read sidecar-map again. Under the raised gate. */
void sidecar_mode_apply_conf(struct sidecar_mode *mode);

/* Reads what this server held before. Call it before the loops run, when the
 * data directory is locked. False: the reason was logged. */
bool sidecar_mode_open(struct sidecar_mode *mode);

/* Writes slots.state again, into a new data directory that has the data. */
void sidecar_mode_write_again(struct sidecar_mode *mode);

/* Notes that the journal has written or synced something. Any thread. */
void sidecar_mode_moved(struct sidecar_mode *mode);

void sidecar_mode_start(struct sidecar_mode *mode);
void sidecar_mode_stop(struct sidecar_mode *mode);

/* Writes slots.state if its newest text is not written yet. The thread that
 * writes it wakes the loops, so call this before they are freed. */
void sidecar_mode_close(struct sidecar_mode *mode);
