/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inline commands, for people with telnet: one line, words between blanks,
 * quotes as in Redis:
 *
 *   "..."  with \n \r \t \b \a \xHH; a backslash before anything else drops out
 *   '...'  with \' only
 *
 * A quote may open within a word; a closing one ends it, and only a blank or
 * the end of the line may follow. LF or CRLF ends the line. Unlike in Redis,
 * where it stalls the connection, a NUL byte is a byte like others.
 */
#pragma once

#include "proto/arena.h"
#include "proto/parse.h"

enum { INLINE_BYTES_MAX = 64 * 1024 }; /* of a line, its LF not counted */

/* Takes bytes up to the end of the line; `line` keeps what came of it so far
 * and is emptied with its end. Errors: ERR_PROTO_QUOTES, ERR_PROTO_BIG_INLINE,
 * ERR_QUERY_BUFFER, ERR_NOMEM. */
MUST_CHECK enum parse_result inline_feed(struct buf *line,
                                         const struct parse_limits *limits,
                                         struct slice data, struct arena *arena,
                                         size_t *ret_used,
                                         struct parse_error *ret_error);

/* Splits one line without its end into words. ERR_PROTO_QUOTES, ERR_NOMEM. */
MUST_CHECK enum err inline_split(struct slice line, struct arena *arena);
