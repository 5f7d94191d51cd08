/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hiredis's reader as a parser of requests, for commands that are split across
 * reads or not canonical. It parses; what it does not guard (a client's
 * reader trusts its server) is guarded here: types and nesting, counts and
 * lengths against the limits, lines without end, and total size. Nothing is
 * allocated for what was only declared. Errors are Redis's.
 * Works with hiredis 0.14 and with 1.0 and later. Belongs to one loop.
 */
#pragma once

#include "proto/arena.h"
#include "proto/parse.h"

struct reader;

/* NULL if memory is short. */
struct reader *reader_new(void);
void reader_free(struct reader *reader);

/* Takes bytes up to the end of one command; the first byte of a command must
 * be '*'. Arguments are added to the arena, which is empty when a command
 * begins and stays the same until it ends. After PARSE_COMMAND and PARSE_EMPTY
 * the reader is at the start of the next command; after PARSE_ERROR it can
 * only be freed.
 *
 * Two differences from Redis: a type byte other than '$' is refused at once,
 * without waiting for the end of its line; and a line ends with CRLF alone,
 * where Redis takes any byte behind a CR for the LF. */
MUST_CHECK enum parse_result reader_feed(struct reader *reader,
                                         const struct parse_limits *limits,
                                         struct slice data, struct arena *arena,
                                         size_t *ret_used,
                                         struct parse_error *ret_error);

/* Bytes of an unfinished argument or line. */
size_t reader_kept_bytes(const struct reader *reader);

/* The memory of the reader, as far as it is known. */
size_t reader_memory_bytes(const struct reader *reader);

/* False after an error, and when one large argument left a large buffer
 * behind: then it is better freed than kept. */
bool reader_is_reusable(const struct reader *reader);
