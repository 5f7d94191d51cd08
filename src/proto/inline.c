/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A word is never longer than its source, so one reservation of the line's
 * length in the arena is enough for all words.
 */
#include "proto/inline.h"

#include "base/hex.h"

struct cursor {
    const char *at, *end;
    char *to;
};

/* Returns whether the byte separates words. */
static bool
is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Returns whether the byte ends a word. As in Redis, the vertical tab and the
 * form feed do not, though they separate words. */
static bool
ends_word(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static char
escape_of(char c)
{
    switch (c) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'b':
        return '\b';
    case 'a':
        return '\a';
    default:
        return c;
    }
}

/* Moves past the closing quote; false if another byte follows in the word. */
static bool
close_quote(struct cursor *cursor)
{
    cursor->at++;
    return cursor->at == cursor->end || is_blank(*cursor->at);
}

/* Reads the bytes after an opening quote. False: the quote is not closed, or
 * another byte follows the closing quote in the word. */
static bool
read_double_quoted(struct cursor *cursor)
{
    while (cursor->at < cursor->end && *cursor->at != '"') {
        const char *at = cursor->at;
        size_t left = (size_t)(cursor->end - at);
        int byte = left >= 4 && at[0] == '\\' && at[1] == 'x'
                       ? hex_escaped_byte(at[2], at[3])
                       : -1;

        if (byte >= 0) {
            *cursor->to++ = (char)byte;
            cursor->at += 4;
        } else if (left >= 2 && at[0] == '\\') {
            *cursor->to++ = escape_of(at[1]);
            cursor->at += 2;
        } else {
            *cursor->to++ = *at;
            cursor->at++;
        }
    }
    return cursor->at < cursor->end && close_quote(cursor);
}

static bool
read_single_quoted(struct cursor *cursor)
{
    while (cursor->at < cursor->end && *cursor->at != '\'') {
        if (cursor->end - cursor->at >= 2 && cursor->at[0] == '\\' &&
            cursor->at[1] == '\'') {
            cursor->at++;
        }
        *cursor->to++ = *cursor->at++;
    }
    return cursor->at < cursor->end && close_quote(cursor);
}

/* Reads a word from its first byte on. */
static bool
read_word(struct cursor *cursor)
{
    while (cursor->at < cursor->end && !ends_word(*cursor->at)) {
        char c = *cursor->at++;

        if (c == '"') {
            return read_double_quoted(cursor);
        }
        if (c == '\'') {
            return read_single_quoted(cursor);
        }
        *cursor->to++ = c;
    }
    return true;
}

enum err
inline_split(struct slice line, struct arena *arena)
{
    struct cursor cursor = { line.data, line.data + line.len, NULL };

    if (line.len > 0) {
        cursor.to = buf_reserve(&arena->bytes, line.len);
        if (cursor.to == NULL) {
            return ERR_NOMEM;
        }
    }
    while (cursor.at < cursor.end) {
        char *word = cursor.to;

        if (is_blank(*cursor.at)) {
            cursor.at++;
            continue;
        }
        if (!read_word(&cursor)) {
            return ERR_PROTO_QUOTES;
        }
        arena->bytes.len += (size_t)(cursor.to - word);
        if (!arena_close_argument(arena, (size_t)(cursor.to - word))) {
            return ERR_NOMEM;
        }
    }
    return OK;
}

/* Removes the LF, and one CR before it. */
static struct slice
strip_end(struct slice line)
{
    CHECK(line.data != NULL && line.len > 0);
    line.len--;
    if (line.len > 0 && line.data[line.len - 1] == '\r') {
        line.len--;
    }
    return line;
}

/* Returns an error if a piece of a line has a byte that no command may have.
 * first: the piece begins the line. */
static enum err
check_bytes(struct slice piece, bool first)
{
    enum { TLS_HANDSHAKE = 0x16, DELETE = 0x7f };

    for (size_t i = 0; i < piece.len; i++) {
        unsigned char c = (unsigned char)piece.data[i];

        if ((c < ' ' && !is_blank((char)c)) || c == DELETE) {
            return first && i == 0 && c == TLS_HANDSHAKE ? ERR_PROTO_TLS
                                                         : ERR_PROTO_CONTROL;
        }
    }
    return OK;
}

static enum parse_result
fail_parse(struct parse_error *ret_error, enum err err)
{
    *ret_error = (struct parse_error){ .err = err };
    return PARSE_ERROR;
}

enum parse_result
inline_feed(struct buf *line, const struct parse_limits *limits,
            struct slice data, struct arena *arena, size_t *ret_used,
            struct parse_error *ret_error)
{
    bool query_first = limits->query_max <= INLINE_BYTES_MAX;
    size_t max = query_first ? limits->query_max : INLINE_BYTES_MAX + 1;
    size_t room = max > line->len ? max - line->len : 0;
    struct slice piece = { data.data, data.len < room ? data.len : room };
    const char *end = memchr(piece.data, '\n', piece.len);
    enum err err;

    if (end != NULL) {
        piece.len = (size_t)(end - piece.data) + 1;
    }
    err = check_bytes(piece, line->len == 0);
    if (err != OK) {
        return fail_parse(ret_error, err);
    }
    if (end == NULL && data.len > room) {
        return fail_parse(ret_error, query_first ? ERR_QUERY_BUFFER
                                                 : ERR_PROTO_BIG_INLINE);
    }
    *ret_used = piece.len;
    if (end == NULL || line->len > 0) {
        buf_append_slice(line, piece);
        if (line->failed) {
            return fail_parse(ret_error, ERR_NOMEM);
        }
        piece = buf_slice(line);
    }
    if (end == NULL) {
        return PARSE_MORE;
    }
    err = inline_split(strip_end(piece), arena);
    line->len = 0;
    if (err != OK) {
        return fail_parse(ret_error, err);
    }
    return arena->count > 0 ? PARSE_COMMAND : PARSE_EMPTY;
}
