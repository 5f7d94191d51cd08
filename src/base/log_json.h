/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The JSON form of a log line: one object, whose members are the fields of
 * logfmt under the same names. Pure.
 */
#pragma once

#include <stddef.h>

struct log_parts {
    const char *time, *level, *source, *event;
    const char *fields; /* logfmt: name=value or name="value", with blanks */
};

/* Writes the object and returns its length, below size, which is at least 256.
 * If it is too long, the value that does not fit is cut and the rest is left
 * out; the object is whole. Values without quotes that are numbers stay
 * numbers; all others are strings. Text that is no field becomes a member
 * "detail". Bytes that are not UTF-8 become U+FFFD. No NUL is added. */
size_t log_json_write(char *ret_line, size_t size,
                      const struct log_parts *parts);
