/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where the fields of a snapshot lie, for the files that write and read it;
 * snapshot.c draws it. Nothing else includes this, except tests.
 */
#pragma once

#include "base/little.h"
#include "core/codec.h"
#include "persist/snapshot_stamp.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SNAPSHOT_MAGIC         "BLMYSNAP"
#define SNAPSHOT_SECTION_MAGIC "SECT"

enum {
    HEADER_AT_VERSION = 8,
    HEADER_AT_FLAGS = 10,
    HEADER_AT_DATABASES = 12,
    HEADER_AT_HISTORY = 16,
    HEADER_AT_POSITION = 56,
    HEADER_AT_SEQUENCE = 64,
    HEADER_AT_CREATED = 72,
    HEADER_AT_KEYS = 80,
    HEADER_AT_FILE_KEY = 88,
    HEADER_AT_HASH = 96,
    HEADER_BYTES = 104,

    SECTION_AT_TYPE = 4,
    SECTION_AT_ZERO = 6,
    SECTION_AT_ORDINAL = 8,
    SECTION_AT_BYTES = 16,
    SECTION_HEAD_BYTES = 24,
    SECTION_HASH_BYTES = 8,
    SECTION_FRAME_BYTES = SECTION_HEAD_BYTES + SECTION_HASH_BYTES,

    RECORD_AT_DB = 0,
    RECORD_AT_NAME_BYTES = 4,
    RECORD_AT_EXPIRES = 8,
    RECORD_AT_FORM_BYTES = 16,
    RECORD_HEAD_BYTES = 24,

    CHUNK_AT_LAYER = 0,
    CHUNK_AT_RUNS = 4, /* version 1: zero */
    CHUNK_AT_OFFSET = 8,
    CHUNK_HEAD_BYTES = 16,

    RUN_AT_LINES = 0,
    RUN_AT_ZERO_LINES = 4,
    RUN_BYTES = 8,

    END_AT_KEYS = 0,
    END_AT_SECTIONS = 8,
    END_AT_BYTES = 16,
    END_AT_FILE_KEY = 24,
    END_BYTES = 32,

    DATABASES_MAX = 65535,
    NAME_BYTES_MAX = 512 << 20,
    /* A section of small filters that lacks one byte to be full, and one more
     * filter. */
    RECORDS_BYTES_MAX = SNAPSHOT_SECTION_BYTES + SNAPSHOT_DIRECT_BYTES,
    LARGE_BYTES_MAX = RECORD_HEAD_BYTES + NAME_BYTES_MAX + CODEC_HEAD_BYTES_MAX,
    /* The step in which lines are hashed and written, or read and hashed: it
     * fits into a core's own cache. */
    PIECE_BYTES = 256 << 10,
    PIECE_LINES = PIECE_BYTES / BLOOM_LINE_BYTES,
    /* A chunk with runs, which spans a piece at most: the runs take less than
     * the zero lines between them would. */
    SPARSE_BYTES_MAX = CHUNK_HEAD_BYTES + PIECE_BYTES + RUN_BYTES
};

enum section_type {
    SECTION_RECORDS = 1,
    SECTION_LARGE = 2,
    SECTION_LINES = 3,
    SECTION_END = 4
};

/* The seed for the hash of a section's payload. */
static inline uint64_t
section_seed(const uint8_t *section_head, uint64_t file_key)
{
    return XXH3_64bits_withSeed(section_head, SECTION_HEAD_BYTES, file_key);
}

static inline void
snapshot_advance(struct snapshot_progress *progress, uint64_t bytes,
                 uint64_t keys)
{
    if (progress != NULL) {
        atomic_fetch_add_explicit(&progress->bytes, bytes,
                                  memory_order_relaxed);
        atomic_fetch_add_explicit(&progress->keys, keys, memory_order_relaxed);
    }
}
