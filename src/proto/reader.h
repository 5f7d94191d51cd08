/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hiredis's reader as a parser of requests, for commands that are split across
 * reads or not canonical. hiredis is made for clients, which trust their
 * server, so this module adds the checks: of types and nesting, of counts and
 * lengths against the limits, of endless lines, and of the total size. Declared
 * counts and lengths allocate nothing. Errors are Redis's. Works with hiredis
 * 0.14, 1.0 and later. Belongs to one loop.
 */
#pragma once

#include "proto/arena.h"
#include "proto/parse.h"

struct reader;

/* Returns NULL if memory is short. */
struct reader *reader_new(void);
void reader_free(struct reader *reader);

/* Consumes bytes up to the end of one command; its first byte must be '*'.
 * Arguments are added to the arena. It is empty when a command begins, and
 * every call gets the same arena until the command ends. After PARSE_COMMAND
 * and PARSE_EMPTY the next command may begin; after PARSE_ERROR the reader can
 * only be freed.
 *
 * Two differences from Redis: a type byte other than '$' is refused at once,
 * without waiting for the end of its line; and a line ends with CRLF alone,
 * while Redis takes any byte behind a CR as the LF. */
MUST_CHECK enum parse_result reader_feed(struct reader *reader,
                                         const struct parse_limits *limits,
                                         struct slice data, struct arena *arena,
                                         size_t *ret_used,
                                         struct parse_error *ret_error);

/* Returns the bytes of an unfinished argument or line. */
size_t reader_kept_bytes(const struct reader *reader);

/* Returns the known part of the reader's memory. */
size_t reader_memory_bytes(const struct reader *reader);

/* Returns false after an error, or if a large argument has made the buffer
 * large: then the caller frees the reader. */
bool reader_is_reusable(const struct reader *reader);
