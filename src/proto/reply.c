/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each reply is one reservation, so that a buffer that fails holds whole
 * pieces only.
 */
#include "proto/reply.h"

#include "base/num.h"

enum {
    GIVE_BYTES = 256 * 1024,         /* shorter bodies are copied */
    HEADER_MAX = 1 + NUM_U64_MAX + 2 /* type, digits, CRLF */
};

static char *
end_line(char *to)
{
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

/* Writes "type [-]value CRLF" to ret_text, which has HEADER_MAX + 1 bytes.
 * Returns its length. */
static size_t
write_header(char *ret_text, char type, bool negative, uint64_t value)
{
    char *to = ret_text;

    *to++ = type;
    if (negative) {
        *to++ = '-';
    }
    to = end_line(to + num_format_u64(value, to));
    return (size_t)(to - ret_text);
}

void
reply_header_long(struct reply *reply, char type, uint64_t count)
{
    char *to = buf_reserve(reply->buf, HEADER_MAX);

    if (to != NULL) {
        reply->buf->len += write_header(to, type, false, count);
    }
}

void
reply_int_long(struct reply *reply, int64_t value)
{
    char *to = buf_reserve(reply->buf, HEADER_MAX + 1);
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    if (to != NULL) {
        reply->buf->len += write_header(to, ':', value < 0, magnitude);
    }
}

/* Appends type len CRLF tag data CRLF; len counts tag and data. */
static void
append_sized(struct reply *reply, char type, struct slice tag,
             struct slice data)
{
    size_t body = tag.len + data.len;
    char *to = buf_reserve(reply->buf, HEADER_MAX + body + 2);

    if (to == NULL) {
        return;
    }
    to += write_header(to, type, false, body);
    memcpy(to, tag.data, tag.len);
    to += tag.len;
    if (data.len > 0) {
        memcpy(to, data.data, data.len);
        to += data.len;
    }
    to = end_line(to);
    reply->buf->len = (size_t)(to - reply->buf->data);
}

/* Appends type text CRLF; the text has no line end. */
static void
append_line(struct reply *reply, char type, struct slice text)
{
    char *to = buf_reserve(reply->buf, 1 + text.len + 2);

    if (to != NULL) {
        *to = type;
        memcpy(to + 1, text.data, text.len);
        to = end_line(to + 1 + text.len);
        reply->buf->len = (size_t)(to - reply->buf->data);
    }
}

void
reply_simple(struct reply *reply, const char *text)
{
    append_line(reply, '+', slice_of(text));
}

void
reply_bulk(struct reply *reply, struct slice s)
{
    append_sized(reply, '$', slice_lit(""), s);
}

void
reply_bulk_text(struct reply *reply, const char *text)
{
    reply_bulk(reply, slice_of(text));
}

static void
append_null(struct reply *reply, char resp2_type)
{
    if (reply->resp == 2) {
        append_line(reply, resp2_type, slice_lit("-1"));
    } else {
        append_line(reply, '_', slice_lit(""));
    }
}

void
reply_null(struct reply *reply)
{
    append_null(reply, '$');
}

void
reply_null_array(struct reply *reply)
{
    append_null(reply, '*');
}

void
reply_map(struct reply *reply, size_t count)
{
    if (reply->resp == 2) {
        reply_header(reply, '*', 2 * count);
    } else {
        reply_header(reply, '%', count);
    }
}

void
reply_set(struct reply *reply, size_t count)
{
    reply_header(reply, reply->resp == 2 ? '*' : '~', count);
}

void
reply_double(struct reply *reply, double value)
{
    char text[NUM_DOUBLE_MAX];
    struct slice s = { text, num_format_double(value, text) };

    if (reply->resp == 2) {
        reply_bulk(reply, s);
    } else {
        append_line(reply, ',', s);
    }
}

void
reply_named_int(struct reply *reply, const char *name, uint64_t value)
{
    reply_bulk_text(reply, name);
    reply_int(reply, (int64_t)value);
}

void
reply_named_double(struct reply *reply, const char *name, double value)
{
    reply_bulk_text(reply, name);
    reply_double(reply, value);
}

void
reply_verbatim(struct reply *reply, struct slice s)
{
    if (reply->resp == 2) {
        reply_bulk(reply, s);
    } else {
        append_sized(reply, '=', slice_lit("txt:"), s);
    }
}

void
reply_give(struct reply *reply, struct buf *body, size_t gap)
{
    struct buf *out = reply->buf;
    size_t head = out->len;
    size_t len = body->len - gap;
    struct buf rest = *out;

    if (len < GIVE_BYTES || head > gap || out->failed ||
        (out->limit > 0 && (len > out->limit || head > out->limit - len))) {
        buf_append(out, body->data + gap, len);
        buf_free(body);
        return;
    }
    if (head < gap) {
        memmove(body->data + head, body->data + gap, len);
    }
    memcpy(body->data, out->data, head);
    out->data = body->data;
    out->len = head + len;
    out->capacity = body->capacity;
    *body = (struct buf){ 0 };
    buf_free(&rest);
}

void
reply_give_verbatim(struct reply *reply, struct buf *body, size_t gap)
{
    size_t len = body->len - gap;

    buf_append(body, "\r\n", 2);
    if (body->failed) {
        reply->buf->failed = true;
        buf_free(body);
        return;
    }
    if (reply->resp == 2) {
        reply_header(reply, '$', len);
    } else {
        reply_header(reply, '=', len + strlen("txt:"));
        buf_append_slice(reply->buf, slice_lit("txt:"));
    }
    reply_give(reply, body, gap);
}

void
reply_text(struct reply *reply, struct buf *text)
{
    if (text->failed) {
        reply->buf->failed = true;
    } else {
        reply_verbatim(reply, buf_slice(text));
    }
    buf_free(text);
}

/* Copies text, control bytes as blanks; returns the place after it. */
static char *
copy_printable(char *to, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];

        *to++ = (char)(c < 0x20 || c == 0x7f ? ' ' : c);
    }
    return to;
}

void
reply_error(struct reply *reply, const char *prefix, struct slice text)
{
    struct slice first = slice_of(prefix);
    char *to;

    while (text.len > 0 && (text.data[text.len - 1] == '\r' ||
                            text.data[text.len - 1] == '\n')) {
        text.len--;
    }
    to = buf_reserve(reply->buf, 1 + first.len + 1 + text.len + 2);
    if (to == NULL) {
        return;
    }
    *to++ = '-';
    to = copy_printable(to, first);
    if (first.len > 0 && text.len > 0) {
        *to++ = ' ';
    }
    to = copy_printable(to, text);
    to = end_line(to);
    reply->buf->len = (size_t)(to - reply->buf->data);
}

size_t
reply_begin(struct reply *reply)
{
    size_t place = reply->buf->len;

    if (buf_reserve(reply->buf, HEADER_MAX) != NULL) {
        reply->buf->len += HEADER_MAX;
    }
    return place;
}

static void
end_with(struct reply *reply, size_t place, char type, size_t count)
{
    struct buf *buf = reply->buf;
    char header[HEADER_MAX + 1];
    size_t len = write_header(header, type, false, count);
    size_t body = place + HEADER_MAX;

    /* After a failure the header may be missing; the buffer is not used. */
    if (buf->failed || body > buf->len) {
        return;
    }
    memcpy(buf->data + place, header, len);
    memmove(buf->data + place + len, buf->data + body, buf->len - body);
    buf->len -= HEADER_MAX - len;
}

void
reply_array_end(struct reply *reply, size_t place, size_t count)
{
    end_with(reply, place, '*', count);
}

void
reply_map_end(struct reply *reply, size_t place, size_t count)
{
    if (reply->resp == 2) {
        end_with(reply, place, '*', 2 * count);
    } else {
        end_with(reply, place, '%', count);
    }
}

/* ---- reading back -------------------------------------------------------- */

/* The values or bytes that must follow a line. */
struct announced {
    uint64_t values, bytes;
};

/* Reads a line without its CRLF. False: our replies have no such line. A null
 * has the length -1. */
static bool
read_line(struct slice line, struct announced *ret_announced)
{
    static const char simple[] = "+-:,#_(";
    struct slice digits = { line.data + 1, line.len - 1 };
    int64_t count = 0;

    *ret_announced = (struct announced){ 0, 0 };
    if (memchr(simple, line.data[0], sizeof(simple) - 1) != NULL) {
        return true;
    }
    if (!slice_to_i64(digits, &count) || count < -1 || count > INT64_MAX / 4) {
        return false;
    }
    if (count < 0) {
        return true;
    }
    switch (line.data[0]) {
    case '$':
    case '=':
    case '!':
        ret_announced->bytes = (uint64_t)count + 2;
        return true;
    case '*':
    case '~':
    case '>':
        ret_announced->values = (uint64_t)count;
        return true;
    case '%':
        ret_announced->values = (uint64_t)count * 2;
        return true;
    case '|': /* an attribute belongs to the value behind it */
        ret_announced->values = (uint64_t)count * 2 + 1;
        return true;
    default:
        return false;
    }
}

struct slice
reply_first(struct slice replies)
{
    static const struct slice none = { NULL, 0 };
    uint64_t missing = 1;
    size_t at = 0;

    while (missing > 0) {
        const char *from = replies.data + at;
        size_t left = replies.len - at;
        const char *lf = left > 0 ? memchr(from, '\n', left) : NULL;
        struct announced announced;
        size_t line;

        if (lf == NULL || lf < from + 2) {
            return none;
        }
        line = (size_t)(lf - from) + 1;
        if (!read_line((struct slice){ from, line - 2 }, &announced) ||
            announced.bytes > left - line ||
            announced.values > UINT64_MAX - missing) {
            return none;
        }
        at += line + announced.bytes;
        missing += announced.values - 1;
    }
    return (struct slice){ replies.data, at };
}
