/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bytes in, commands out. The scanner takes complete, canonical commands where
 * they lie, without copying; whatever is split across reads or not canonical
 * goes through hiredis's reader, attached from the pool only meanwhile and fed
 * in slices of 2 KB; inline commands have their own parser. Both ways accept
 * and refuse exactly the same bytes (tests/fuzz/fuzz_stream.c).
 *
 * A pool and a batch belong to one loop; a stream to one connection of it.
 *
 *   request  = multibulk | inline
 *   multibulk = "*" count CRLF count x ("$" len CRLF len bytes CRLF)
 *   count, len = "0" | digit1-9 *digit            (no sign, no leading zero)
 */
#pragma once

#include "proto/batch.h"
#include "proto/parse.h"

struct stream_pool; /* idle readers of one loop */
struct partial;     /* one reader with its arena */

struct stream_pool *stream_pool_new(void);

/* After all streams of the loop have ended. */
void stream_pool_free(struct stream_pool *pool);

/* Zeroed at the start of a connection. */
struct stream {
    struct partial *partial; /* NULL unless a command is unfinished */
};

enum stream_result {
    STREAM_COMMANDS, /* the batch holds 1 or more commands */
    STREAM_MORE,     /* all data is taken; no command is complete yet */
    STREAM_ERROR     /* reply with *ret_error and close */
};

/* Parses what it can. On STREAM_COMMANDS, *ret_used is where the next call
 * starts: behind the last command of the batch. The batch's slices end with
 * `data`, with the next stream_parse, and with stream_done. A batch that came
 * through the reader holds one command, its begin and end are 0 and *ret_used,
 * and the stream keeps it until stream_done: calling stream_parse again before
 * it gives the same command (a paused one) and takes no data (*ret_used 0).
 * Empty commands (*0, *-1, an empty line) are skipped. ERR_NOMEM is an error
 * like the others. On STREAM_MORE *ret_used is len. After STREAM_ERROR only
 * stream_fini may follow. */
enum stream_result stream_parse(struct stream *stream, struct stream_pool *pool,
                                const struct parse_limits *limits,
                                const char *data, size_t len,
                                struct batch *batch, size_t *ret_used,
                                struct parse_error *ret_error);

/* The batch was executed: gives a reader that holds no further bytes back. */
void stream_done(struct stream *stream, struct stream_pool *pool);

/* The connection ends. */
void stream_fini(struct stream *stream, struct stream_pool *pool);

/* Bytes kept for an unfinished command, for CLIENT LIST and limits; and the
 * memory that this takes. */
size_t stream_kept_bytes(const struct stream *stream);
size_t stream_memory_bytes(const struct stream *stream);
