/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The conversation of a primary and a replica. Pure functions, any thread; the
 * readers take their input as hostile.
 *
 *   replica                                  primary
 *   [AUTH [user] password]                   +OK
 *   REPLCONF bloomery 1 run <run id>         +BLOOMERY 1 <run id> <chain>
 *   REPLCONF hash-secret ?<n>                +<fingerprint> ... or +-
 *   REPLCONF hash-secret <fingerprint>       +<32 hexadecimal digits>
 *   REPLCONF listening-port p [ip-address a] [capa refused:<why>]
 *            [capa holdings] [slots ranges]  +OK
 *   PSYNC <history> <position> [FAILOVER]    +CONTINUE <history> <key>
 *     or PSYNC ? -1                          +FULLRESYNC <history> <position>
 *                                              <sequence> <key> <bytes>
 *                                              [<past>]
 *
 * After +FULLRESYNC the primary sends the snapshot in chunks, each "$<n>\r\n"
 * and n bytes, and "$0\r\n" at the end. The snapshot is complete at a position
 * of its own, not before the announced one. Then, as after +CONTINUE, the
 * primary sends the log from there on: groups with their seals. Between groups
 * and chunks there may be lines, which no position counts:
 *
 *   "+PING\r\n"     the primary is alive
 *   "+GETACK\r\n"   acknowledge now, and again when your disk has the position
 *   "+HOLDINGS <n>\r\n" and n bytes, the text of cluster/holdings.h: which
 *                   slots of a cluster the primary holds at this position of
 *                   its log; sent after the answer to PSYNC, and at each change
 *
 * +HOLDINGS is sent only between groups, and only to a replica that has sent
 * capa holdings. +PING and empty lines ("\n") may also come before the answer
 * to PSYNC, which can take long.
 *
 * The replica sends REPLCONF ACK <position> [FACK <position>] each second and
 * after GETACK. The positions are ends of groups: executed, and on its disk.
 * From +FULLRESYNC until the snapshot is in place it sends ACK 0.
 *
 * hash-secret lists up to 32 fingerprints of the primary's keyring, from the
 * n-th on, and gives one of the secrets. Any error means that it gives none; an
 * older primary knows no such option. refused: why the replica could not load
 * the last snapshot. An older primary ignores each capa that it does not know.
 *
 * chain: run ids from the primary's own primary upwards, separated by commas;
 * "-": none. A replica that finds its own run id there would close a ring. key:
 * the key of the seals, 16 hex digits. past: the earlier histories of the
 * primary's log, newest first, each "<history>:<until>", separated by commas; a
 * replica whose log went on in another way learns from it which part of its log
 * the primary does not have. A server of another kind answers REPLCONF bloomery
 * with an error.
 */
#pragma once

#include "base/buf.h"
#include "base/slice.h"
#include "journal/history.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WIRE_VERSION = 1,
    WIRE_ID_CHARS = 40,
    WIRE_CHAIN_MAX = 8,   /* run ids; longer chains are refused */
    WIRE_LINE_MAX = 1024, /* of a reply, or of a line between groups */
    WIRE_CHUNK_MAX = 1 << 20,
    WIRE_HOLDINGS_MAX = 2 << 20 /* as HOLDINGS_TEXT_MAX */
};

/* ---- from the replica to the primary: commands --------------------------- */

void wire_ack(struct buf *out, uint64_t position, uint64_t synced);

/* Reads REPLCONF ACK n [FACK m]; the caller has checked argv[0]. synced is 0
 * without FACK. */
bool wire_parse_ack(const struct slice *argv, size_t argc,
                    uint64_t *ret_position, uint64_t *ret_synced);

/* ---- from the primary to the replica ------------------------------------- */

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
    uint64_t position, sequence, bytes; /* of FULLRESYNC; bytes: an estimate */
    struct history_past past[HISTORY_PAST_MAX]; /* of FULLRESYNC */
    char error[256];                            /* the primary's text */
};
void wire_write_answer(struct buf *out, const struct wire_answer *answer);

/* Read a line without its CR LF. False, with a reason: the line is malformed,
 * of a newer version, or from a server of another kind; then *ret_hello or
 * *ret_answer is not touched. For an error reply ("-..."), wire_parse_answer()
 * returns true and WIRE_ERROR, and wire_parse_hello() false and a reason that
 * quotes it. */
bool wire_parse_hello(struct slice line, struct wire_hello *ret_hello,
                      char *ret_reason, size_t reason_size);
bool wire_parse_answer(struct slice line, struct wire_answer *ret_answer,
                       char *ret_reason, size_t reason_size);

/* Returns the length for "%.*s" with which messages show an error reply of the
 * primary. Errors of errors.def are shown whole: their end may say what to do.
 */
enum { WIRE_SHOWN_MAX = 352 };
int wire_shown(struct slice line);

void wire_write_chunk_head(struct buf *out, size_t bytes); /* 0: the end */
void wire_write_holdings_head(struct buf *out, size_t bytes);
