/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The full state in one file, version 2; snapshot.c draws it. SAVE, BGSAVE,
 * the journal's base and (later) a full resync are all this. The writer runs
 * under the raised gate or in a forked child: it only reads the keyspace, and
 * neither allocates nor locks nor logs.
 */
#pragma once

#include "base/err.h"
#include "keyspace/keyspace.h"
#include "persist/snapshot_stamp.h"

/* Memory for the writer, taken before the fork. NULL: there is none. */
struct snapshot_writer;
struct snapshot_writer *snapshot_writer_new(void);
void snapshot_writer_free(struct snapshot_writer *writer);

/* Writes everything, expired keys too, to fd, which must be empty; does not
 * sync. stamp->keys is filled in by itself. progress may be NULL. Returns 0 or
 * an errno value. */
MUST_CHECK int snapshot_write(struct snapshot_writer *writer,
                              const struct keyspace *ks,
                              const struct snapshot_stamp *stamp, int fd,
                              struct snapshot_progress *progress);

/* The same without a keyspace, for whoever has the filters one after the
 * other: begin (stamp->keys says how many there will be), add each, end. After
 * a failure the file is rubbish and all that follow fail too. */
MUST_CHECK int snapshot_begin(struct snapshot_writer *writer,
                              const struct snapshot_stamp *stamp,
                              uint32_t databases, int fd,
                              struct snapshot_progress *progress);
MUST_CHECK int snapshot_add(struct snapshot_writer *writer,
                            const struct snapshot_record *record,
                            const struct bloom *bloom);
MUST_CHECK int snapshot_end(struct snapshot_writer *writer);
