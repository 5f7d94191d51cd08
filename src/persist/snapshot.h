/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The full state in one file, version 2; snapshot.c draws it. SAVE, BGSAVE,
 * the journal's base and (later) a full resync are all this. The writer runs
 * under the raised gate or in a forked child: it only reads the keyspace, and
 * neither allocates nor locks nor logs.
 */
#pragma once

#include "base/slice.h"
#include "keyspace/keyspace.h"

#include <stdatomic.h>
#include <stdint.h>

enum {
    SNAPSHOT_VERSION = 2,
    SNAPSHOT_HISTORY_BYTES = 40,
    SNAPSHOT_SECTION_BYTES = 1 << 20, /* of small filters, about */
    SNAPSHOT_CHUNK_BYTES = 16 << 20,  /* of a large one, at most */
    SNAPSHOT_DIRECT_BYTES = 128 << 10 /* filters from here on are large */
};

/* Where in history the state stands. */
struct snapshot_stamp {
    char history[SNAPSHOT_HISTORY_BYTES + 1]; /* whose (persist/history.h);
                                                 all zeros: nobody's */
    uint32_t version;  /* of the file that was read; the newest is written */
    uint64_t position; /* of the log, in bytes since its beginning */
    uint64_t sequence; /* of the last journal group that is in it */
    uint64_t created_ms;
    uint64_t keys; /* that it holds */
};

/* One key. name is borrowed for the call. */
struct snapshot_record {
    struct slice name;
    uint32_t db;
    uint64_t expires_at_ms; /* 0: stays */
    uint64_t incarnation;
};

/* How far a writer or loader is; it may lie in memory that a parent shares
 * with its child. */
struct snapshot_progress {
    _Atomic uint64_t bytes, keys;
};

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
