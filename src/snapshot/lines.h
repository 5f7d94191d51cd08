/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the lines of a large filter from a snapshot, straight to their final
 * place. Chunks are not trusted; snapshot_format.h draws them.
 */
#pragma once

#include "snapshot/section.h"

/* The owner sets file and progress, which may be NULL. */
struct lines {
    struct section_file *file;
    struct snapshot_progress *progress;
    uint8_t *piece; /* SPARSE_BYTES_MAX + SECTION_HASH_BYTES, once needed */
};
void lines_fini(struct lines *lines);

/* Reads all lines of a filter of codec_new, whose section *section is. On
 * success *section is the last one that was read. *ret_broken: the lines end
 * early, and *section has voids, of which only the head was read. */
enum snapshot_status lines_read(struct lines *lines, struct bloom *bloom,
                                struct section *section, bool *ret_broken);

/* Reads the positions of the pieces of a deletable filter, whose section is
 * *section: each from the record's position `first` on. Raises *last to the
 * highest. The filter gets them (bloom_extra.pieces). */
enum snapshot_status lines_read_pieces(struct lines *lines, struct bloom *bloom,
                                       const struct bloom_env *env,
                                       const struct section *section,
                                       uint64_t first, uint64_t *last);
