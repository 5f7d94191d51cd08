/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Appends replies to a buffer, in RESP2 or RESP3 as the connection wants. If
 * the buffer cannot grow, buf.failed is set, and dispatch checks it once.
 * Belongs to the loop that executes the command.
 */
#pragma once

#include "base/buf.h"

struct reply {
    struct buf *buf;
    unsigned resp; /* 2 or 3 */
};

/* ---- hot: a few instructions each ---------------------------------------- */

/* Append type count CRLF, and :value CRLF, for any number; the inline functions
 * below call them. */
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

/* Appends +OK. */
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

/* Appends :value. */
static inline void
reply_int(struct reply *reply, int64_t value)
{
    if (value < 0) {
        reply_int_long(reply, value);
        return;
    }
    reply_header(reply, ':', (uint64_t)value);
}

/* Appends one of two words for each flag, without a branch. The caller has
 * reserved count x 4 bytes (buf_reserve). */
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

/* Appends :0 or :1 for each flag. The caller has reserved count x 4 bytes. */
static inline void
reply_flags(struct reply *reply, const bool *flags, size_t count)
{
    static const char words[2][4] = { ":0\r\n", ":1\r\n" };

    reply_words(reply, flags, count, words);
}

/* Appends #f or #t (RESP3 only). The caller has reserved count x 4 bytes. */
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

/* Appends #t or #f, in RESP2 :1 or :0. */
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

/* ---- less frequent replies ----------------------------------------------- */

void reply_simple(struct reply *reply, const char *text); /* +text */
void reply_bulk(struct reply *reply, struct slice s);     /* $len data */
void reply_bulk_text(struct reply *reply, const char *text);
void reply_null(struct reply *reply);       /* $-1 or _ */
void reply_null_array(struct reply *reply); /* *-1 or _ */

/* Begins a map of count pairs: %count, or in RESP2 an array of 2 x count. */
void reply_map(struct reply *reply, size_t count);

/* Begins a set: ~count, or in RESP2 an array. */
void reply_set(struct reply *reply, size_t count);

/* Appends ,value or in RESP2 a bulk string, with the text of
 * num_format_double(). */
void reply_double(struct reply *reply, double value);

/* Append a field of a map: its name as a bulk string, and then its value. */
void reply_named_int(struct reply *reply, const char *name, uint64_t value);
void reply_named_double(struct reply *reply, const char *name, double value);

/* Appends =len txt:... or in RESP2 a bulk string. */
void reply_verbatim(struct reply *reply, struct slice s);

/* Appends BODY, which is RESP, without its first GAP bytes, and empties it. A
 * long body is not copied: it becomes the reply's buffer, and the replies
 * before it are copied into the gap. If they fit exactly, nothing is moved. */
void reply_give(struct reply *reply, struct buf *body, size_t gap);

/* Appends a text as reply_verbatim does, and treats BODY as reply_give does. */
void reply_give_verbatim(struct reply *reply, struct buf *body, size_t gap);

/* Appends a text as reply_verbatim does and frees it. If it has failed, the
 * reply fails. */
void reply_text(struct reply *reply, struct buf *text);

/* Appends -PREFIX text. Control bytes become blanks, so that no text of a
 * client can end the line; CR and LF at the end are dropped, as in Redis. An
 * empty prefix or text is left out, with the blank between them. */
void reply_error(struct reply *reply, const char *prefix, struct slice text);

/* Begins an array or map whose count is known only at its end: reply_begin()
 * leaves a gap for the header and returns its place; reply_array_end() or
 * reply_map_end() writes the header and closes the gap. They may be nested; an
 * outer place stays valid. */
size_t reply_begin(struct reply *reply);
void reply_array_end(struct reply *reply, size_t place, size_t count);
void reply_map_end(struct reply *reply, size_t place, size_t count);

/* ---- reading back what was written -------------------------------------- */

/* Returns the first whole value of some replies or pushes, with all values
 * nested in it; empty if they do not begin with a whole value. */
struct slice reply_first(struct slice replies);

/* Returns whether the value is a push, which answers no request. */
static inline bool
reply_is_push(struct slice value)
{
    return value.len > 0 && value.data[0] == '>';
}
