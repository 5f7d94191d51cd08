/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the full state into one file, version 2; snapshot.c draws it. SAVE,
 * BGSAVE, the journal's base and full synchronizations are all this format. The
 * writer runs under the raised gate or in a forked child: it only reads the
 * keyspace, and neither allocates nor locks nor logs.
 */
#pragma once

#include "base/err.h"
#include "keyspace/keyspace.h"
#include "persist/snapshot_stamp.h"

/* Memory for the writer, allocated before the fork. NULL: there is none. */
struct snapshot_writer;
struct snapshot_writer *snapshot_writer_new(void);
void snapshot_writer_free(struct snapshot_writer *writer);

/* Writes everything, expired keys too, to fd, which must be empty; does not
 * sync. Sets stamp->keys itself. progress may be NULL. Returns 0 or an errno
 * value. */
MUST_CHECK int snapshot_write(struct snapshot_writer *writer,
                              const struct keyspace *ks,
                              const struct snapshot_stamp *stamp, int fd,
                              struct snapshot_progress *progress);

/* Writes filters that the caller has one after the other: begin (stamp->keys
 * says how many there will be), add each, end. After a failure the file is
 * unusable, and all later calls fail too. */
MUST_CHECK int snapshot_begin(struct snapshot_writer *writer,
                              const struct snapshot_stamp *stamp,
                              uint32_t databases, int fd,
                              struct snapshot_progress *progress);
MUST_CHECK int snapshot_add(struct snapshot_writer *writer,
                            const struct snapshot_record *record,
                            const struct bloom *bloom);
MUST_CHECK int snapshot_end(struct snapshot_writer *writer);
