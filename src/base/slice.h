/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Borrowed bytes with a length, not NUL-terminated. A slice owns nothing; it is
 * valid as long as the memory that it points into.
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

/* The length for "%.*s" with which messages show text from clients. */
enum { SLICE_SHOWN_MAX = 128 };
static inline int
slice_shown(struct slice s)
{
    return s.len < SLICE_SHOWN_MAX ? (int)s.len : SLICE_SHOWN_MAX;
}

static inline uint64_t
slice_load64(const char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    return word;
}

static inline uint32_t
slice_load32(const char *at)
{
    uint32_t word;

    memcpy(&word, at, sizeof(word));
    return word;
}

/* Names are short: up to 16 bytes are compared as two words that may overlap,
 * which is faster than a call of memcmp. */
static inline bool
slice_equal(struct slice a, struct slice b)
{
    const char *x = a.data;
    const char *y = b.data;
    size_t n = a.len;

    if (n != b.len) {
        return false;
    }
    if (n > 16) {
        return memcmp(x, y, n) == 0;
    }
    if (n >= 8) {
        return ((slice_load64(x) ^ slice_load64(y)) |
                (slice_load64(x + n - 8) ^ slice_load64(y + n - 8))) == 0;
    }
    if (n >= 4) {
        return ((slice_load32(x) ^ slice_load32(y)) |
                (slice_load32(x + n - 4) ^ slice_load32(y + n - 4))) == 0;
    }
    return n == 0 ||
           (x[0] == y[0] && x[n / 2] == y[n / 2] && x[n - 1] == y[n - 1]);
}

/* Returns the ASCII lower case of one byte. */
static inline char
slice_fold(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return (char)(c | 0x20);
    }
    return c;
}

/* Returns whether the bytes are this text, without regard to ASCII case. */
bool slice_is_word(struct slice s, const char *text);

/* Parse a strict decimal, as Redis does: an optional '-' (slice_to_i64 only),
 * no leading zeros, no '+', no blanks, in range. On failure *ret_value is
 * untouched. */
bool slice_to_i64(struct slice s, int64_t *ret_value);
bool slice_to_u64(struct slice s, uint64_t *ret_value);

/* Returns whether a byte is white space or NUL. Such a text cannot be a word in
 * a line of a file. */
bool slice_has_space(struct slice s);

/* Returns whether all bytes are zero; there is at least one. */
static inline bool
slice_is_zero(struct slice s)
{
    return s.data[0] == 0 && memcmp(s.data, s.data + 1, s.len - 1) == 0;
}

/* Cuts this text off the front of *text. False: *text does not begin with it.
 */
bool slice_take(struct slice *text, const char *front);

/* Cuts the bytes before the next `end` off the front of *text, and `end`
 * itself. False: there is no such byte. */
bool slice_take_until(struct slice *text, char end, struct slice *ret_bytes);

/* Cuts off the next line, and its LF or CR LF; the last line may have none.
 * False at the end of the text. */
bool slice_next_line(struct slice *text, struct slice *ret_line);

/* Cuts the next word, which blanks or tabs surround, off the front of *text.
 * False at the end of the text. */
bool slice_next_word(struct slice *text, struct slice *ret_word);
