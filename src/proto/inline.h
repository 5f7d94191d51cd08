/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inline commands, as people type them in telnet: one line of words between
 * blanks, with quotes as in Redis:
 *
 *   "..."  with \n \r \t \b \a \xHH; before any other byte the \ is dropped
 *   '...'  with \' only
 *
 * A quote may open within a word; a closing quote ends the word, and only a
 * blank or the end of the line may follow. LF or CRLF ends the line. A person
 * types no control bytes but TAB, VT, FF and CR, so a line with another one
 * belongs to another protocol, such as TLS, and no part of it is executed.
 */
#pragma once

#include "proto/arena.h"
#include "proto/parse.h"

enum { INLINE_BYTES_MAX = 64 * 1024 }; /* of a line, without its LF */

/* Consumes bytes up to the end of the line. `line` keeps an unfinished line,
 * and is empty after its end. Errors: ERR_PROTO_CONTROL and ERR_PROTO_TLS as
 * soon as the byte arrives, ERR_PROTO_QUOTES, ERR_PROTO_BIG_INLINE,
 * ERR_QUERY_BUFFER, ERR_NOMEM. */
MUST_CHECK enum parse_result inline_feed(struct buf *line,
                                         const struct parse_limits *limits,
                                         struct slice data, struct arena *arena,
                                         size_t *ret_used,
                                         struct parse_error *ret_error);

/* Splits one line without its end into words. ERR_PROTO_QUOTES, ERR_NOMEM. */
MUST_CHECK enum err inline_split(struct slice line, struct arena *arena);
