/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the two parsers of unfinished commands (reader.h, inline.h) answer to a
 * piece of input. They take bytes in any portions and stop behind the first
 * command; the answer does not depend on how the input was cut.
 */
#pragma once

enum parse_result {
    PARSE_MORE,    /* all of the piece is taken; the command goes on */
    PARSE_COMMAND, /* complete: 1 or more arguments are in the arena */
    PARSE_EMPTY,   /* complete, without arguments: to be skipped */
    PARSE_ERROR    /* the connection must close */
};
