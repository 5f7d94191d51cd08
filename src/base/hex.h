/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lower-case hexadecimal digits: keys and hashes in files and on the wire. All
 * other bytes are refused, upper-case digits too; only hex_escaped_byte() takes
 * both cases. Pure.
 */
#pragma once

#include "base/slice.h"

enum { HEX_U64_CHARS = 16 }; /* always all of them */

/* Writes HEX_U64_CHARS digits, and no NUL. */
void hex_put_u64(char *ret_digits, uint64_t value);

/* Reads HEX_U64_CHARS digits; on failure *ret_value is untouched. */
bool hex_get_u64(const char *digits, uint64_t *ret_value);

/* Reads a text of exactly HEX_U64_CHARS digits. */
bool hex_parse_u64(struct slice text, uint64_t *ret_value);

/* Returns whether a text is exactly `count` digits. */
bool hex_is_digits(struct slice text, size_t count);

/* Reads a text of exactly two digits for each byte; on failure the bytes are
 * undefined. */
bool hex_get_bytes(struct slice text, void *ret_bytes, size_t len);

/* Returns the byte that two digits of either case mean, as escapes have them;
 * -1 if one of them is no digit. */
int hex_escaped_byte(char high, char low);

/* Writes two digits for each byte, and a NUL. */
void hex_put_bytes(char *ret_text, const void *bytes, size_t len);
