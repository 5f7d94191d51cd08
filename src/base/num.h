/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers as valkey-bloom reads and writes them, and as RedisBloom reads them:
 * Rust's and Redis's rules for arguments of BF.*, the shortest text of a double
 * that reads back as the same, and memory sizes with units. Pure.
 */
#pragma once

#include "base/slice.h"

/* Reads a decimal with an optional sign; leading zeros are allowed ("+5", "05",
 * "-0"). */
bool num_parse_i64(struct slice text, int64_t *ret_value);

/* Reads a decimal from 0 to 4294967295, in the same form; refuses "-0", as Rust
 * does. */
bool num_parse_u32(struct slice text, uint32_t *ret_value);

/* Reads a double as Rust's f64 does: decimal or exponent form, ".5", "5.",
 * "inf", "infinity", "nan" in any case; no blanks, no hex, no suffix. */
bool num_parse_double(struct slice text, double *ret_value);

/* Reads a double as Redis does: any text that strtod reads to its end,
 * hexadecimal and "inf" included. Refuses a blank before it, "nan", and numbers
 * that are too large or too small for a double. */
bool num_parse_strtod(struct slice text, double *ret_value);

/* Reads bytes with an optional unit: b k kb m mb g gb t tb in any case (kb and
 * mb are powers of 1024, k and m of 1000, as in Valkey). */
bool num_parse_bytes(struct slice text, uint64_t *ret_bytes);

/* Writes decimal digits without a NUL. Returns the length, at most
 * NUM_U64_MAX. */
enum { NUM_U64_MAX = 20 };
size_t num_format_u64(uint64_t value, char *ret_text);

/* Writes the shortest text that reads back as value: an integer without a
 * point, plain decimals for moderate exponents, else d.ddde-N without zero
 * padding. Returns its length; ret_text holds NUM_DOUBLE_MAX bytes. */
enum { NUM_DOUBLE_MAX = 32 };
size_t num_format_double(double value, char *ret_text);

/* Writes the same digits without an exponent ("0.000000001"), as Rust's Display
 * does. ret_text holds NUM_PLAIN_MAX bytes. */
enum { NUM_PLAIN_MAX = 400 };
size_t num_format_plain(double value, char *ret_text);
