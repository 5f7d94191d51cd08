/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stream of a primary (wire.h) as it arrives at a replica. Pure, any
 * thread.
 */
#pragma once

#include "repl/wire.h"

/* Cuts the stream into pieces. The reader stores no bytes: the caller passes an
 * unfinished piece again from its begin, with more behind it (an unfinished
 * group is not scanned twice). data begins behind the `used` bytes of the last
 * piece; MORE uses none. The pieces do not depend on how the bytes arrived,
 * except CHUNKs, which are as long as what is there. After BAD the reader is of
 * no use. */
enum wire_kind {
    WIRE_MORE,  /* no whole piece yet */
    WIRE_LINE,  /* a line; value: without CR LF, maybe empty. In any phase */
    WIRE_CHUNK, /* bytes of the snapshot (value), maybe a part of a chunk */
    WIRE_CHUNKS_END,
    WIRE_GROUP,    /* a group with a valid seal */
    WIRE_HOLDINGS, /* the text of what the primary holds; in WIRE_GROUPS */
    WIRE_BAD,
};
struct wire_piece {
    enum wire_kind kind;
    size_t used;        /* bytes of data */
    struct slice value; /* of LINE, CHUNK and HOLDINGS; of GROUP, its commands
                         */
    const char *seal;   /* of GROUP: the GROUP_SEAL_BYTES behind value */
    uint64_t sequence;  /* of GROUP */
    const char *reason; /* of BAD; a constant */
};
enum wire_phase { WIRE_LINES, WIRE_SNAPSHOT, WIRE_GROUPS };
struct wire_reader {
    enum wire_phase phase; /* set by the owner; CHUNKS_END moves to GROUPS */
    uint64_t key;          /* of the seals */
    size_t group_max;      /* larger groups are refused */
    uint64_t chunk_left;
    /* Of an unfinished group: where its first unfinished word begins, and how
     * many words the command still has; zero at the begin of a group. */
    size_t scanned;
    uint64_t words_left;
};
void wire_read(struct wire_reader *reader, struct slice data,
               struct wire_piece *ret_piece);
