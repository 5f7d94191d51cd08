/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A borrowed run of bytes. It owns nothing and ends when what it points into
 * does; it is not NUL-terminated.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const char *data;
    size_t len;
};

#define slice_lit(literal) ((struct slice){ (literal), sizeof(literal) - 1 })

static inline struct slice
slice_of(const char *text)
{
    return (struct slice){ text, strlen(text) };
}

static inline bool
slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* ASCII case-insensitive; text must be lower or upper case ASCII. */
bool slice_is_word(struct slice s, const char *text);

/* Strict decimal as Redis parses it: optional '-', no leading zeros, no '+',
 * no blanks, within int64_t. False leaves *ret_value untouched. */
bool slice_to_i64(struct slice s, int64_t *ret_value);
bool slice_to_u64(struct slice s, uint64_t *ret_value);
