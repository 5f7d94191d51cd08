/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One side of one TLS connection, as a filter between the bytes of a socket
 * and those of a connection or a link. It has no socket: its owner gives it
 * what was received (tls_open) and sends what comes out (`sealed`). So all
 * limits, timeouts and buffers stay those of the owner. One thread at a time.
 *
 *   socket -> received -> tls_open -> plain  -> conn or link
 *   socket <- sealed   <- tls_seal <- plain  <- conn or link
 *                      <- tls_open  (handshake, alerts, key updates)
 *
 * Records must be sent in the order in which they were appended to `sealed`.
 */
#pragma once

#include "base/buf.h"
#include "base/slice.h"
#include "tls/tls_context.h"

#include <stdbool.h>
#include <stddef.h>

struct tls;

/* tls_new_server() makes the side that was dialled. tls_new_dial() makes the
 * side that dials `host`; it checks the other side's certificate and, with
 * check_names, that the certificate is for this host. Returns NULL without
 * memory, or if the context of that side is not loaded. */
struct tls *tls_new_server(struct tls_contexts *contexts);
struct tls *tls_new_dial(struct tls_contexts *contexts, const char *host);
void tls_free(struct tls *tls); /* NULL is fine */

enum tls_result {
    TLS_MORE,  /* all bytes are taken; more may come */
    TLS_ENDED, /* the other side sends no more (close_notify) */
    TLS_FAILED /* tls_reason says why; the connection can only be closed */
};

/* Takes all of `received`. Appends its plain bytes to `plain`, and bytes that
 * must be sent back to `sealed`, even when it fails. An empty `received` begins
 * the handshake of the side that dials. Appends at most 16 KiB more than it
 * gets: the part of a record that came before. */
enum tls_result tls_open(struct tls *tls, struct slice received,
                         struct buf *plain, struct buf *sealed);

/* Appends the records of `plain` to `sealed`. Call it only after the handshake.
 * False: it has failed, and some records may be missing. */
bool tls_seal(struct tls *tls, struct slice plain, struct buf *sealed);

/* Seals the next piece of `waiting`, at most `most` bytes from *at on, moves
 * *at behind it, and drops the sealed bytes as soon as they are the larger
 * part. So a long buffer is sealed when its bytes can be sent, without moving
 * it often. */
bool tls_seal_piece(struct tls *tls, struct buf *waiting, size_t *at,
                    size_t most, struct buf *sealed);

/* Appends close_notify, once, if the handshake is done and nothing has failed.
 * Nothing can be sealed after it. */
void tls_end(struct tls *tls, struct buf *sealed);

/* Returns whether the handshake is done. */
bool tls_is_established(const struct tls *tls);

/* Returns whether the far end has shown a certificate that was verified. */
bool tls_has_certificate(const struct tls *tls);

/* Returns whether tls_open has returned TLS_ENDED. */
bool tls_has_ended(const struct tls *tls);

/* Returns whether the other side must still send the rest of a record. */
bool tls_is_inside_record(const struct tls *tls);

/* Returns why TLS_FAILED was returned; a static text. */
const char *tls_reason(const struct tls *tls);

/* Estimates the memory that this side uses now. */
size_t tls_memory_bytes(const struct tls *tls);
