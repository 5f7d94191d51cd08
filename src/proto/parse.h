/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The terms that the parsers share: the limits on what a connection may send,
 * the error that closes it, and the answer of the two parsers of unfinished
 * commands (reader.h, inline.h) to a piece of input. These two accept pieces
 * of any size and stop behind the first command; their answer does not depend
 * on how the input was cut.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* The limits differ before and after AUTH. */
struct parse_limits {
    size_t args_max;      /* arguments of one command */
    size_t bulk_max;      /* bytes of one argument */
    size_t query_max;     /* bytes kept for one unfinished command */
    bool unauthenticated; /* before AUTH; selects the error text */
};

struct parse_error {
    enum err err;
    char detail[8]; /* for the %s of PROTO_EXPECTED, without control bytes */
};

enum parse_result {
    PARSE_MORE,    /* the whole piece is consumed; the command continues */
    PARSE_COMMAND, /* complete: the arena holds 1 or more arguments */
    PARSE_EMPTY,   /* complete, without arguments: to be skipped */
    PARSE_ERROR    /* the connection must close */
};
