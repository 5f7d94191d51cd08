/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes RESP2 or RESP3, by connection, behind what the buffer holds already.
 * A buffer that cannot grow remembers it (buf.failed); dispatch looks once.
 * Belongs to the loop that executes.
 */
#pragma once

#include "base/buf.h"

struct reply {
    struct buf *buf;
    unsigned resp; /* 2 or 3 */
};

/* ---- hot: a few instructions each ---------------------------------------- */

/* type count CRLF for any count; the inline functions below call it. */
void reply_header_long(struct reply *reply, char type, uint64_t count);
void reply_int_long(struct reply *reply, int64_t value);

static inline void
reply_header(struct reply *reply, char type, uint64_t count)
{
    char *to;

    if (count > 9) {
        reply_header_long(reply, type, count);
        return;
    }
    to = buf_reserve(reply->buf, 4);
    if (to != NULL) {
        to[0] = type;
        to[1] = (char)('0' + (char)count);
        to[2] = '\r';
        to[3] = '\n';
        reply->buf->len += 4;
    }
}

/* +OK */
static inline void
reply_ok(struct reply *reply)
{
    char *to = buf_reserve(reply->buf, 5);

    if (to != NULL) {
        to[0] = '+';
        to[1] = 'O';
        to[2] = 'K';
        to[3] = '\r';
        to[4] = '\n';
        reply->buf->len += 5;
    }
}

/* :value */
static inline void
reply_int(struct reply *reply, int64_t value)
{
    if (value < 0) {
        reply_int_long(reply, value);
        return;
    }
    reply_header(reply, ':', (uint64_t)value);
}

/* :0 or :1 for each flag, without a branch on it; room for count x 4 bytes
 * must be there (buf_reserve). */
static inline void
reply_words(struct reply *reply, const bool *flags, size_t count,
            const char words[2][4])
{
    char *to = reply->buf->data + reply->buf->len;

    for (size_t i = 0; i < count; i++, to += 4) {
        memcpy(to, words[flags[i]], 4);
    }
    reply->buf->len += count * 4;
}

static inline void
reply_flags(struct reply *reply, const bool *flags, size_t count)
{
    static const char words[2][4] = { ":0\r\n", ":1\r\n" };

    reply_words(reply, flags, count, words);
}

/* The same with #f and #t, which RESP3 has. */
static inline void
reply_booleans(struct reply *reply, const bool *flags, size_t count)
{
    static const char words[2][4] = { "#f\r\n", "#t\r\n" };

    reply_words(reply, flags, count, words);
}

static inline void
reply_array(struct reply *reply, size_t count)
{
    reply_header(reply, '*', count);
}

/* #t or #f, in RESP2 :1 or :0. */
static inline void
reply_bool(struct reply *reply, bool value)
{
    char *to;

    if (reply->resp == 2) {
        reply_header(reply, ':', value);
        return;
    }
    to = buf_reserve(reply->buf, 4);
    if (to != NULL) {
        to[0] = '#';
        to[1] = (char)(value ? 't' : 'f');
        to[2] = '\r';
        to[3] = '\n';
        reply->buf->len += 4;
    }
}

/* ---- the others -----------------------------------------------------------
 */

void reply_simple(struct reply *reply, const char *text); /* +text */
void reply_bulk(struct reply *reply, struct slice s);     /* $len data */
void reply_bulk_text(struct reply *reply, const char *text);
void reply_null(struct reply *reply);       /* $-1 or _ */
void reply_null_array(struct reply *reply); /* *-1 or _ */

/* count pairs: %count, or in RESP2 an array of 2 x count. */
void reply_map(struct reply *reply, size_t count);

/* ~count, or in RESP2 an array. */
void reply_set(struct reply *reply, size_t count);

/* ,value or in RESP2 a bulk string; text as num_format_double. */
void reply_double(struct reply *reply, double value);

/* =len txt:... or in RESP2 a bulk string. */
void reply_verbatim(struct reply *reply, struct slice s);

/* Appends what is in BODY behind its first GAP bytes, RESP already, and empties
 * it. A long body is not copied: it becomes the reply's buffer, and what is in
 * the reply before it goes into the gap. If that fits exactly nothing is moved.
 */
void reply_give(struct reply *reply, struct buf *body, size_t gap);

/* The same for a text, to be answered as reply_verbatim does. */
void reply_give_verbatim(struct reply *reply, struct buf *body, size_t gap);

/* =len txt:... for a text that was put together, which is freed; if it has
 * failed, so has the reply. */
void reply_text(struct reply *reply, struct buf *text);

/* -PREFIX text; bytes below 0x20 and 0x7f become blanks, so that no client
 * text can end the line; those that end the text are left out, as in Redis. An
 * empty prefix or text is left out, and the blank between them. */
void reply_error(struct reply *reply, const char *prefix, struct slice text);

/* For a count that is known only at the end: leaves room for a header, and
 * returns its place; reply_array_end fills it in and closes the gap. They may
 * be nested; an outer place stays valid. */
size_t reply_array_begin(struct reply *reply);
void reply_array_end(struct reply *reply, size_t place, size_t count);

/* ---- reading back what was written ----------------------------------------
 */

/* The first whole value of some replies or pushes, with all that is nested in
 * it; empty if they do not begin with one. */
struct slice reply_first(struct slice replies);

/* A push answers no request. */
static inline bool
reply_is_push(struct slice value)
{
    return value.len > 0 && value.data[0] == '>';
}

/* How many requests these whole values answer. */
size_t reply_count(struct slice replies);
