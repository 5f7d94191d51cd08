/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes a keyspace that nobody changes meanwhile, in a program of one thread.
 */
#pragma once

#include "keyspace/keyspace.h"
#include "snapshot/snapshot.h"

/* Writes everything, expired keys too, to fd, which must be empty; does not
 * sync. Counts the keys itself. progress may be NULL. Returns 0 or an errno
 * value. */
MUST_CHECK int snapshot_write(struct snapshot_writer *writer,
                              const struct keyspace *ks,
                              const struct snapshot_stamp *stamp, int fd,
                              struct snapshot_progress *progress);
