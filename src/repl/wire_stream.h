/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stream of a primary (wire.h) as it arrives at a replica. Pure, any
 * thread.
 */
#pragma once

#include "repl/wire.h"

/* Cuts the stream into pieces. The reader stores no bytes: the caller passes an
 * unfinished piece again from its beginning, with more bytes behind it (an
 * unfinished group is not scanned twice). data begins after the `used` bytes of
 * the last piece; MORE uses no bytes. The pieces do not depend on how the bytes
 * arrived, except CHUNKs: each has all bytes of its chunk that have arrived.
 * After BAD the reader must not be used. */
enum wire_kind {
    WIRE_MORE, /* no whole piece yet */
    WIRE_LINE, /* a line, in any phase; value is its text, which may be empty */
    WIRE_CHUNK, /* bytes of the snapshot (value), maybe a part of a chunk */
    WIRE_CHUNKS_END,
    WIRE_GROUP,    /* a group with a valid seal */
    WIRE_HOLDINGS, /* what the primary holds, as text; only in WIRE_GROUPS */
    WIRE_BAD,
};
struct wire_piece {
    enum wire_kind kind;
    size_t used;        /* bytes of data that the piece takes */
    struct slice value; /* of LINE, CHUNK and HOLDINGS; of GROUP, its commands
                         */
    const char *seal;   /* of GROUP: the GROUP_SEAL_BYTES after value */
    uint64_t sequence;  /* of GROUP */
    const char *reason; /* of BAD; a constant */
};
enum wire_phase { WIRE_LINES, WIRE_SNAPSHOT, WIRE_GROUPS };
struct wire_reader {
    enum wire_phase phase; /* set by the owner; GROUPS after CHUNKS_END */
    uint64_t key;          /* key of the seals */
    size_t group_max;      /* larger groups are refused */
    uint64_t chunk_left;
    /* For an unfinished group: where its first unfinished word begins, and how
     * many words the command still has; both are zero at the beginning of a
     * group. */
    size_t scanned;
    uint64_t words_left;
};
void wire_read(struct wire_reader *reader, struct slice data,
               struct wire_piece *ret_piece);
