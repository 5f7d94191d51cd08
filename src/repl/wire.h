/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a primary and a replica say to each other; wire.c draws it. Pure
 * functions: texts to write, and hostile texts to read.
 *
 *   replica                                  primary
 *   [AUTH [user] password]                   +OK
 *   REPLCONF bloomery 1 run <run id>         +BLOOMERY 1 <run id> <chain>
 *   REPLCONF listening-port p [ip-address a] +OK
 *   PSYNC <history> <position> [FAILOVER]    +CONTINUE <history> <key>
 *     or PSYNC ? -1                          +FULLRESYNC <history> <position>
 *                                              <sequence> <key> <bytes>
 *   then, of a full one: "$<n>\r\n" and n bytes of the snapshot, as often as
 *   needed, and "$0\r\n"; then, of both, the log from the position on: groups
 *   with their seals. Between groups (chunks) lines that do not count:
 *     "+PING\r\n"                            I am there
 *     "+GETACK\r\n"                          say at once how far you are, and
 *                                            again when your disk is there
 *   +PING and empty lines ("\n") before the answer to PSYNC, too: that may take
 *   a while.
 *   REPLCONF ACK <position> [FACK <position>], each second and when asked;
 *   positions are ends of groups: applied, and on the replica's disk. From
 *   +FULLRESYNC until the snapshot is in place, ACK 0: I am still there.
 *
 * chain: run ids from the primary's own primary upwards, commas between, "-"
 * without: who finds himself in it would make a ring. key: of the seals, 16 hex
 * digits. A server that is no Bloomery answers REPLCONF bloomery with an error.
 */
#pragma once

#include "base/buf.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WIRE_VERSION = 1,
    WIRE_ID_CHARS = 40,
    WIRE_CHAIN_MAX = 8,   /* run ids; longer chains are refused */
    WIRE_LINE_MAX = 1024, /* of a reply or a line between groups */
    WIRE_CHUNK_MAX = 1 << 20
};

/* ---- the replica writes, the primary reads (as a command) ---------------- */

/* A RESP command of these words. */
void wire_command(struct buf *out, const struct slice *argv, size_t argc);
void wire_ack(struct buf *out, uint64_t position, uint64_t synced);

/* REPLCONF ACK n [FACK m]; argv[0] is REPLCONF. synced: 0 without FACK. */
bool wire_parse_ack(const struct slice *argv, size_t argc,
                    uint64_t *ret_position, uint64_t *ret_synced);

/* ---- the primary writes, the replica reads ------------------------------- */

struct wire_hello {
    unsigned version;
    char run_id[WIRE_ID_CHARS + 1];
    size_t chain_count;
    char chain[WIRE_CHAIN_MAX][WIRE_ID_CHARS + 1];
};
void wire_write_hello(struct buf *out, const struct wire_hello *hello);

enum wire_answer_kind { WIRE_CONTINUE, WIRE_FULLRESYNC, WIRE_ERROR };
struct wire_answer {
    enum wire_answer_kind kind;
    char history[WIRE_ID_CHARS + 1];
    uint64_t key;
    uint64_t position, sequence, bytes; /* FULLRESYNC; bytes: about */
    char error[256];                    /* the primary's own words */
};
void wire_write_answer(struct buf *out, const struct wire_answer *answer);

/* A line without CR LF. False with a reason: it is none, of a newer version, or
 * of a server that is no Bloomery. A "-..." line is an error answer (true) to
 * PSYNC, and a reason, with the primary's own words, instead of a hello. What
 * is returned on failure is not touched. */
bool wire_parse_hello(struct slice line, struct wire_hello *ret_hello,
                      char *ret_reason, size_t reason_size);
bool wire_parse_answer(struct slice line, struct wire_answer *ret_answer,
                       char *ret_reason, size_t reason_size);

void wire_write_chunk_head(struct buf *out, size_t bytes); /* 0: the end */

/* ---- the stream as it arrives -------------------------------------------- */

/* Cuts what arrives into pieces; keeps nothing but a few figures. data begins
 * where the last piece ended: behind `used` bytes, none with MORE. What is
 * there of a group is not read again when more of it has come, so all of it has
 * to be given again. However the bytes are split, the pieces are the same, but
 * for CHUNKs, which are as long as what is there. After BAD nothing follows. */
enum wire_kind {
    WIRE_MORE,  /* no whole piece yet */
    WIRE_LINE,  /* a line; value: without CR LF, maybe empty. Also "-..." in any
                   phase */
    WIRE_CHUNK, /* some of the snapshot's bytes (value), maybe not all of a
                   chunk */
    WIRE_CHUNKS_END,
    WIRE_GROUP, /* a group whose seal holds */
    WIRE_BAD,   /* reason says what */
};
struct wire_piece {
    enum wire_kind kind;
    size_t used;        /* bytes of data */
    struct slice value; /* of LINE and CHUNK; of GROUP, its commands */
    const char *seal;   /* of GROUP: GROUP_SEAL_BYTES behind value */
    uint64_t sequence;  /* of GROUP */
    const char *reason; /* of BAD; a constant */
};
enum wire_phase { WIRE_LINES, WIRE_SNAPSHOT, WIRE_GROUPS };
struct wire_reader {
    enum wire_phase phase; /* set by the owner; CHUNKS_END moves to GROUPS */
    uint64_t key;          /* of the seals */
    size_t group_max;      /* larger groups are refused */
    uint64_t chunk_left;
    /* Of an unfinished group, zero at its begin: where the next word begins
     * that was not whole yet, and how many the command still has. */
    size_t scanned;
    uint64_t words_left;
};
void wire_read(struct wire_reader *reader, struct slice data,
               struct wire_piece *ret_piece);
