/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where the fields of a snapshot lie, for the files that write and read it.
 * Nothing else includes this, except tests. All figures are little-endian.
 *
 * The state that a file has is the one at the position E of the log. The file
 * was written from B to E while clients went on: each record is the copy of a
 * key at a position of its own, and the effects (B, E] of the log follow, which
 * say what happened behind that position. Where nothing changed meanwhile, B is
 * E, and there are no effects. replay/complete.h has the rules of loading.
 *
 *   header, 104 bytes; in every later version magic, version and hash keep
 *   their places, so that a newer file can be distinguished from a damaged
 *   one
 *      0   8  magic "BLMYSNAP"
 *      8   2  version of this format: 3
 *     10   2  flags: 0
 *     12   4  databases, 1..65535
 *     16  40  id of the history that B is of, zeros behind it
 *     56   8  B: position in the log
 *     64   8  sequence of the last journal group before B
 *     72   8  when it was begun, unix ms
 *     80   8  keys at B: a hint
 *     88   8  file key: random, so that a section of another file does not fit
 *     96   8  XXH3-64 of bytes 0..95
 *
 *   then sections up to the end of the file
 *      0   4  magic "SECT"
 *      4   2  type
 *      6   2  0
 *      8   8  ordinal: 0, 1, 2 ...
 *     16   8  bytes of the payload
 *     24   .  payload
 *      .   8  XXH3-64 of the payload, its seed being XXH3-64 of the 24 bytes
 *             above with the file key as seed. So a section that was moved,
 *             left out or exchanged is noticed
 *
 *   A key is named by its database, its epoch and its name. The number of the
 *   database is the one that clients used at B. In the file a number
 *   stands for the same keys even after a SWAPDB. The epoch says how often the
 *   database was flushed since B. Of two records of a key the later one counts.
 *   A void of a key cancels the records of the key before it.
 *
 *   type 5: small filters, whole records one after the other, at least one
 *      0   4  database
 *      4   4  bytes of the name
 *      8   8  when it expires, unix ms; 0: never
 *     16   8  bytes of the stored form
 *     24   8  position of the log up to which the copy includes everything
 *     32   4  epoch
 *     36   .  name
 *      .   .  stored form (core/codec.c) without its last 8 bytes, the
 *             checksum: the section has one
 *
 *   type 6: a large filter. One record of the same form, that ends with the
 *   head of the stored form; "bytes of the stored form" counts the lines too.
 *   All lines follow at once in sections of type 3. Then comes one section of
 *   type 10 if the filter is deletable. Or a section of voids, whose first void
 *   is of this key, ends the filter early
 *
 *   type 3: a chunk of the lines of the layers, in order. Lines between two
 *   chunks of a layer, and before its first, are zero; the last chunk reaches
 *   the layer's end
 *      0   4  layer
 *      4   4  n: number of runs; 0: there is no table of runs
 *      8   8  where in the layer's bytes these lines begin
 *     16  8n  runs, in a chunk that spans 256 KiB at most:
 *               0  4  lines that are here, at least one
 *               4  4  zero lines behind them, left out; 0 in the last run
 *      .   .  whole lines, of this layer only, 16 MiB at most. A chunk without
 *             runs and lines marks the layer's end, if zero lines are before it
 *
 *   type 8: voids, one after the other, at least one
 *      0   4  database
 *      4   4  epoch
 *      8   4  bytes of the name
 *     12   .  name
 *
 *   type 10: the pieces of a deletable filter (core/deletable.h). Lines lose
 *   bits there, so a loader must know which effects each piece includes
 *      0   8  most: a piece of a layer has collision_piece_bytes(most);
 *             0: there are no pieces, and the record's position counts
 *      8  8n  for each piece, layer by layer: up to which position of the
 *             log its lines include everything
 *
 *   type 9: effects, behind all records and voids: a group of the log, or a
 *   part of one, whose other parts stand before and behind it
 *      0   8  position where the group's text begins
 *      8   8  sequence of the group
 *     16   8  bytes of the whole text, without the seal
 *     24   8  where in the text this part begins
 *     32   .  the part, 1 MiB at most
 *
 *   type 7: the end, and the last bytes of the file
 *      0   8  records
 *      8   8  sections before this one
 *     16   8  bytes before this one
 *     24   8  file key, once more: without it nothing could be salvaged
 *     32   8  E: position in the log
 *     40   8  sequence of the last journal group before E
 *     48   8  keys at E; 2^64 - 1: not known, since the file was salvaged or
 *             has only a part of the keys
 *     56  40  id of the history that E is of
 *
 * Whether a filter is small or large is the writer's choice, and so is which
 * zero lines it leaves out.
 *
 * Version 2 has the types 1, 2 and 4 in place of 5, 6 and 7. Their records have
 * neither position nor epoch, their end only the first 32 bytes, and no key is
 * there twice. It has neither voids nor effects: B is E. Version 1 is the same
 * without runs and without anything left out.
 */
#pragma once

#include "base/little.h"
#include "core/codec.h"
#include "snapshot/snapshot_stamp.h"

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
    RECORD_HEAD_BYTES_2 = 24, /* up to version 2 */
    RECORD_AT_COPIED = 24,
    RECORD_AT_EPOCH = 32,
    RECORD_HEAD_BYTES = 36,

    VOID_AT_DB = 0,
    VOID_AT_EPOCH = 4,
    VOID_AT_NAME_BYTES = 8,
    VOID_HEAD_BYTES = 12,

    PIECES_AT_MOST = 0,
    PIECES_HEAD_BYTES = 8,
    PIECES_POSITION_BYTES = 8,

    EFFECTS_AT_POSITION = 0,
    EFFECTS_AT_SEQUENCE = 8,
    EFFECTS_AT_BYTES = 16,
    EFFECTS_AT_OFFSET = 24,
    EFFECTS_HEAD_BYTES = 32,

    CHUNK_AT_LAYER = 0,
    CHUNK_AT_RUNS = 4, /* version 1: zero */
    CHUNK_AT_OFFSET = 8,
    CHUNK_HEAD_BYTES = 16,

    RUN_AT_LINES = 0,
    RUN_AT_ZERO_LINES = 4,
    RUN_BYTES = 8,

    END_AT_RECORDS = 0,
    END_AT_SECTIONS = 8,
    END_AT_BYTES = 16,
    END_AT_FILE_KEY = 24,
    END_BYTES_2 = 32, /* up to version 2 */
    END_AT_POSITION = 32,
    END_AT_SEQUENCE = 40,
    END_AT_KEYS = 48,
    END_AT_HISTORY = 56,
    END_BYTES = 96,

    DATABASES_MAX = 65535,
    NAME_BYTES_MAX = 512 << 20,
    /* The longest section of small filters: it lacks one byte to be full, and
     * then one more filter comes. */
    RECORDS_BYTES_MAX = SNAPSHOT_SECTION_BYTES + SNAPSHOT_DIRECT_BYTES,
    LARGE_BYTES_MAX = RECORD_HEAD_BYTES + NAME_BYTES_MAX + CODEC_HEAD_BYTES_MAX,
    VOIDS_BYTES_MAX = VOID_HEAD_BYTES + NAME_BYTES_MAX,
    EFFECTS_BYTES_MAX = EFFECTS_HEAD_BYTES + SNAPSHOT_SECTION_BYTES,
    PIECES_BYTES_MAX = 512 << 20, /* of a filter of 4 TB */
    /* The step in which lines are hashed and written, or read and hashed: it
     * fits into a core's own cache. */
    PIECE_BYTES = 256 << 10,
    PIECE_LINES = PIECE_BYTES / BLOOM_LINE_BYTES,
    /* The longest chunk with runs. It spans at most a piece, and the runs
     * take less than the zero lines between them would. */
    SPARSE_BYTES_MAX = CHUNK_HEAD_BYTES + PIECE_BYTES + RUN_BYTES
};

/* The first four are those of versions 1 and 2. A layout that changes gets a
 * new type, so that a section can be read even if the header is lost. */
enum section_type {
    SECTION_RECORDS_2 = 1,
    SECTION_LARGE_2 = 2,
    SECTION_LINES = 3,
    SECTION_END_2 = 4,
    SECTION_RECORDS = 5,
    SECTION_LARGE = 6,
    SECTION_END = 7,
    SECTION_VOIDS = 8,
    SECTION_EFFECTS = 9,
    SECTION_PIECES = 10
};

/* Returns the seed for the hash of a section's payload. */
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
