/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The load generator's reply scanner. It counts complete RESP2 or RESP3 replies
 * in a stream that may be cut anywhere. It checks that each has the expected
 * kind and, for arrays, the expected number of elements. One `struct replies`
 * belongs to one connection. Nearly all replies have four bytes (":1\r\n",
 * "#t\r\n"); they take one load and one comparison.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_LINE_BYTES = 512, REPLY_UNIT_BYTES = 4 };

/* What every reply must look like. */
struct reply_shape {
    uint64_t elements; /* of the array; 0: a single value */
    bool status;       /* "+..." instead of an integer or boolean */
};

struct reply_totals {
    uint64_t errors; /* error replies, error elements, unexpected shapes */
    uint64_t ones;   /* ":1" and "#t" */
    char first_error[REPLY_LINE_BYTES];
};

struct replies {
    uint64_t open; /* values that the current reply still lacks */
    uint64_t skip; /* bytes of a bulk string to pass over */
    bool inside;   /* an array's header has been read, open counts elements */
    size_t line_len;
    char line[REPLY_LINE_BYTES]; /* the start of a line that was cut */
};

static inline void
replies_init(struct replies *replies)
{
    memset(replies, 0, sizeof(*replies));
    replies->open = 1;
}

/* Counts an error, and keeps the first text; an error reply's text replaces
 * that of an unexpected reply. */
static inline void
replies_error(struct reply_totals *totals, const char *line, size_t len)
{
    bool better = line[0] == '-' && totals->first_error[0] != '-';

    if (totals->errors++ == 0 || better) {
        snprintf(totals->first_error, sizeof(totals->first_error), "%.*s",
                 (int)len, line);
    }
}

/* Skips consecutive four-byte values, at most `limit`, and returns their number
 * in *ret_units. */
static inline const char *
replies_units(const char *at, uint64_t limit, struct reply_totals *totals,
              uint64_t *ret_units)
{
    static const char zero_text[] = ":0\r\n";
    static const char bit_text[] = { 0, 1, 0, 0 };
    static const char true_text[] = "#t\r\n";
    static const char false_text[] = "#f\r\n";
    uint32_t zero, bit, yes, no, unit;
    uint64_t ones = 0;
    uint64_t units;

    memcpy(&zero, zero_text, REPLY_UNIT_BYTES);
    memcpy(&bit, bit_text, REPLY_UNIT_BYTES);
    memcpy(&yes, true_text, REPLY_UNIT_BYTES);
    memcpy(&no, false_text, REPLY_UNIT_BYTES);
    for (units = 0; units < limit; units++) {
        memcpy(&unit, at, REPLY_UNIT_BYTES);
        if ((unit & ~bit) == zero) {
            ones += (unit & bit) != 0;
        } else if (unit == yes) {
            ones++;
        } else if (unit != no) {
            break;
        }
        at += REPLY_UNIT_BYTES;
    }
    totals->ones += ones;
    *ret_units = units;
    return at;
}

/* Reads one whole line, without its CRLF. */
static inline void
replies_line(struct replies *replies, const struct reply_shape *shape,
             const char *line, size_t len, struct reply_totals *totals)
{
    uint64_t number = line[1] == '-' ? 0 : strtoull(line + 1, NULL, 10);
    bool wants_array = shape->elements > 0 && !replies->inside;
    bool good = false;

    switch (line[0]) {
    case '*':
        good = wants_array && number == shape->elements;
        replies->inside = true;
        replies->open += number;
        break;
    case '%':
        replies->inside = true;
        replies->open += 2 * number;
        break;
    case '$':
    case '=':
        replies->skip = line[1] == '-' ? 0 : number + 2;
        break;
    case ':':
    case '#':
        good = !wants_array && !shape->status;
        totals->ones += len == 2 && (line[1] == '1' || line[1] == 't');
        break;
    case '+':
        good = !wants_array && shape->status;
        break;
    default: /* errors, and replies that no measured command gives */
        break;
    }
    replies->open--;
    if (!good) {
        replies_error(totals, line, len);
    }
}

/* Collects the bytes of one line that is not a four-byte value, and checks the
 * line when it is complete. */
static inline const char *
replies_slow(struct replies *replies, const struct reply_shape *shape,
             const char *at, const char *end, struct reply_totals *totals)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    size_t len = (size_t)((newline != NULL ? newline + 1 : end) - at);
    size_t room = REPLY_LINE_BYTES - 1 - replies->line_len;

    /* Drops the middle of an overlong line, because only its start matters. */
    memcpy(replies->line + replies->line_len, at, len < room ? len : room);
    replies->line_len += len < room ? len : room;
    if (newline != NULL) {
        size_t text = replies->line_len;

        while (text > 0 && (replies->line[text - 1] == '\n' ||
                            replies->line[text - 1] == '\r')) {
            text--;
        }
        replies->line[text] = '\0';
        replies->line_len = 0;
        replies_line(replies, shape, replies->line, text, totals);
    }
    return at + len;
}

/* Scans the bytes that have arrived; returns how many replies they completed.
 */
static inline uint64_t
replies_scan(struct replies *replies, const struct reply_shape *shape,
             const char *at, size_t len, struct reply_totals *totals)
{
    const char *end = at + len;
    uint64_t answered = 0;

    while (at < end) {
        uint64_t left = (uint64_t)(end - at);
        uint64_t units = 0;

        if (replies->skip > 0) {
            units = replies->skip < left ? replies->skip : left;
            replies->skip -= units;
            at += units;
        } else if (replies->line_len == 0 && replies->inside) {
            left /= REPLY_UNIT_BYTES;
            left = left < replies->open ? left : replies->open;
            at = replies_units(at, left, totals, &units);
            replies->open -= units;
        } else if (replies->line_len == 0 && shape->elements == 0 &&
                   !shape->status) {
            at = replies_units(at, left / REPLY_UNIT_BYTES, totals, &units);
            answered += units;
        }
        if (units == 0) {
            at = replies_slow(replies, shape, at, end, totals);
        }
        if (replies->open == 0 && replies->skip == 0) {
            answered++;
            replies->open = 1;
            replies->inside = false;
        }
    }
    return answered;
}
