/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the full state into one file, version 3; snapshot_format.h draws it.
 * SAVE, BGSAVE, the journal's base and full synchronizations all use this
 * format. The caller gives copies: the writer never sees the keyspace, and
 * neither allocates nor locks nor logs.
 *
 * The order of calls is: begin, then keys and voids as they come, then the
 * effects, then the end. Each call returns 0 or an errno value. After a failure
 * the file is unusable, and all later calls fail too. EOVERFLOW: a record's
 * epoch is too high.
 */
#pragma once

#include "base/err.h"
#include "core/bloom.h"
#include "snapshot/snapshot_stamp.h"

/* Returns NULL without memory. */
struct snapshot_writer;
struct snapshot_writer *snapshot_writer_new(void);
void snapshot_writer_free(struct snapshot_writer *writer);

/* Begins a snapshot at the place B of the log. The file must be empty, and is
 * not synced. progress may be NULL. */
MUST_CHECK int snapshot_begin(struct snapshot_writer *writer,
                              const struct snapshot_stamp *begin,
                              uint32_t databases, int fd,
                              struct snapshot_progress *progress);

/* Writes a key with a small filter. form: the head that codec_put_head makes,
 * and behind it all lines as they are in memory. Form and name together have
 * less than SNAPSHOT_DIRECT_BYTES. */
MUST_CHECK int snapshot_put(struct snapshot_writer *writer,
                            const struct snapshot_record *record,
                            struct slice form);

/* Begins a key with a filter of any size: all its lines follow, in order, in
 * calls of snapshot_put_lines, and for a deletable filter then one call of
 * snapshot_put_pieces. Or a snapshot_void of this key ends it early. */
MUST_CHECK int snapshot_put_head(struct snapshot_writer *writer,
                                 const struct snapshot_record *record,
                                 struct slice head);

/* Writes the next lines of the key, in pieces of any size, each of one layer.
 */
MUST_CHECK int snapshot_put_lines(struct snapshot_writer *writer,
                                  const void *lines, size_t bytes);

/* Writes the positions of the pieces of a deletable filter, as the walk has
 * them (keyspace/walk.h). */
MUST_CHECK int snapshot_put_pieces(struct snapshot_writer *writer, size_t most,
                                   const uint64_t *positions, size_t count);

/* Writes a key whose filter nobody changes meanwhile. */
MUST_CHECK int snapshot_add(struct snapshot_writer *writer,
                            const struct snapshot_record *record,
                            const struct bloom *bloom);

/* Says that the records of this name so far do not count. Of `record`, only db,
 * epoch and name matter. */
MUST_CHECK int snapshot_void(struct snapshot_writer *writer,
                             const struct snapshot_record *record);

/* Writes a group of the log. The first group begins at B, each further one
 * where the group before it ended, and the last one ends at E. */
MUST_CHECK int snapshot_put_effects(struct snapshot_writer *writer,
                                    const struct snapshot_effects *effects);

/* Ends the snapshot at the place E of the log. Of `end`, only position,
 * sequence, history and keys matter. */
MUST_CHECK int snapshot_end(struct snapshot_writer *writer,
                            const struct snapshot_stamp *end);
