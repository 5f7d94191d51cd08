/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parses the bytes of a connection into commands. The scanner parses complete,
 * canonical commands in the read buffer, without copying. A command that is
 * split across reads or not canonical goes through hiredis's reader, which the
 * stream gets from the pool for that command only (reader.c). Inline commands
 * have their own parser. The result does not depend on whether the scanner or
 * the reader parses a command (tests/fuzz/fuzz_stream.c).
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

struct stream_pool; /* idle partials of one loop */
struct partial;     /* keeps one command that came in pieces (stream.c) */

struct stream_pool *stream_pool_new(void);

/* Frees the pool, after stream_fini() of all streams of the loop. */
void stream_pool_free(struct stream_pool *pool);

/* The stream of one connection; all zero at its beginning. */
struct stream {
    struct partial *partial; /* NULL: the stream keeps no command */
};

enum stream_result {
    STREAM_COMMANDS, /* the batch holds 1 or more commands */
    STREAM_MORE,     /* all data is consumed; no command is complete yet */
    STREAM_ERROR     /* reply with *ret_error and close */
};

/* Parses commands into the batch. On STREAM_COMMANDS, *ret_used is where the
 * next call begins: after the last command of the batch. The batch's slices are
 * valid until `data` ends, the next stream_parse, or stream_done. A batch that
 * came through the reader has one command, which begins at 0 and ends at
 * *ret_used. The stream keeps it until stream_done: before that, stream_parse
 * returns the same command again (a paused one) and consumes no data (*ret_used
 * is 0). Empty commands (*0, *-1, an empty line) are skipped. On STREAM_MORE,
 * *ret_used is len. After STREAM_ERROR, which may be ERR_NOMEM, only
 * stream_fini may follow. */
enum stream_result stream_parse(struct stream *stream, struct stream_pool *pool,
                                const struct parse_limits *limits,
                                const char *data, size_t len,
                                struct batch *batch, size_t *ret_used,
                                struct parse_error *ret_error);

/* Ends the executed batch. Its reader, if it had one, returns to the pool. */
void stream_done(struct stream *stream, struct stream_pool *pool);

/* Ends the stream with its connection. */
void stream_fini(struct stream *stream, struct stream_pool *pool);

/* Return the bytes kept for an unfinished command, for CLIENT LIST and limits,
 * and the memory that they take. */
size_t stream_kept_bytes(const struct stream *stream);
size_t stream_memory_bytes(const struct stream *stream);
