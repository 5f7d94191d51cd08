/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the lines of a large filter from a snapshot, straight to their final
 * place. Chunks are not trusted; snapshot_format.h draws them.
 */
#pragma once

#include "snapshot/section.h"

/* The owner sets file, and progress, which may be NULL. */
struct lines {
    struct section_file *file;
    struct snapshot_progress *progress;
    uint8_t *piece; /* SPARSE_BYTES_MAX + SECTION_HASH_BYTES, once needed */
};
void lines_fini(struct lines *lines);

/* Reads all lines of a filter that codec_new has made, and whose section is
 * *section. On success *section is the last section that was read. *ret_broken
 * is set if the lines end early, since the filter was removed or moved during
 * the save. Then *section is a section of voids (type 8, snapshot_format.h), of
 * which only the head was read. */
enum snapshot_status lines_read(struct lines *lines, struct bloom *bloom,
                                struct section *section, bool *ret_broken);

/* Reads the positions of the pieces of a deletable filter from *section, and
 * gives them to the filter (bloom_extra.pieces). None may be below `first`, the
 * position of the record. Raises *last to the highest of them. */
enum snapshot_status lines_read_pieces(struct lines *lines, struct bloom *bloom,
                                       const struct bloom_env *env,
                                       const struct section *section,
                                       uint64_t first, uint64_t *last);
