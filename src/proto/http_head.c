/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads line by line. Each call begins again with the first line, since a head
 * is short.
 */
#include "proto/http_head.h"

#include <stdint.h>

enum { QUALITY_ONE = 1000 };

struct parser {
    struct http_head *head;
    bool has_host, is_1_1;
    unsigned open_quality, text_quality; /* in thousandths */
};

/* ---- characters ---------------------------------------------------------- */

static bool
is_token_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c >= 'a' && c <= 'z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool
is_token(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!is_token_char(s.data[i])) {
            return false;
        }
    }
    return s.len > 0;
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Returns whether a line, or the part of it that has come, has a character that
 * no line may have. */
static bool
has_control(struct slice line)
{
    for (size_t i = 0; i < line.len; i++) {
        unsigned char c = (unsigned char)line.data[i];

        if ((c < ' ' && c != '\t') || c == 0x7f) {
            return true;
        }
    }
    return false;
}

static struct slice
trimmed(struct slice s)
{
    while (s.len > 0 && is_blank(s.data[0])) {
        s.data++;
        s.len--;
    }
    while (s.len > 0 && is_blank(s.data[s.len - 1])) {
        s.len--;
    }
    return s;
}

/* Cuts the part before the first c, or all, off the front; the c is dropped. */
static struct slice
cut_at(struct slice *rest, char c)
{
    const char *at = rest->len > 0 ? memchr(rest->data, c, rest->len) : NULL;
    size_t len = at != NULL ? (size_t)(at - rest->data) : rest->len;
    struct slice part = { rest->data, len };

    if (rest->len > 0) { /* no arithmetic with NULL */
        len += at != NULL;
        rest->data += len;
        rest->len -= len;
    }
    return part;
}

/* ---- the request line ---------------------------------------------------- */

static enum http_method
method_of(struct slice word)
{
    if (slice_equal(word, slice_lit("GET"))) {
        return HTTP_GET;
    }
    return slice_equal(word, slice_lit("HEAD")) ? HTTP_HEAD : HTTP_OTHER;
}

/* Returns 0, or the status of the error. */
static unsigned
read_request_line(struct parser *parser, struct slice line)
{
    struct slice method = cut_at(&line, ' ');
    struct slice target = cut_at(&line, ' ');

    if (!is_token(method) || target.len == 0 || target.data[0] != '/' ||
        line.len != sizeof("HTTP/1.1") - 1 ||
        memcmp(line.data, "HTTP/", 5) != 0 || line.data[6] != '.') {
        return 400;
    }
    if (line.data[5] != '1' || (line.data[7] != '0' && line.data[7] != '1')) {
        return 505;
    }
    parser->is_1_1 = line.data[7] == '1';
    parser->head->method = method_of(method);
    parser->head->path = cut_at(&target, '?');
    return 0;
}

/* ---- the header fields --------------------------------------------------- */

/* Reads a quality from 0 to 1 with at most three digits behind the point. */
static unsigned
read_quality(struct slice text)
{
    unsigned value = 0;
    unsigned scale = QUALITY_ONE;

    if (text.len == 0 || text.len > 5 ||
        (text.data[0] != '0' && text.data[0] != '1') ||
        (text.len > 1 && text.data[1] != '.')) {
        return 0;
    }
    value = text.data[0] == '1' ? QUALITY_ONE : 0;
    for (size_t i = 2; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return 0;
        }
        scale /= 10;
        value += (unsigned)(text.data[i] - '0') * scale;
    }
    return value <= QUALITY_ONE ? value : 0;
}

/* Reads a media range, which is a type with parameters:
 * text/plain;version=0.0.4;q=0.5 */
static void
read_accepted(struct parser *parser, struct slice range)
{
    struct slice type = trimmed(cut_at(&range, ';'));
    unsigned quality = QUALITY_ONE;
    unsigned *best = NULL;

    while (range.len > 0) {
        struct slice value = cut_at(&range, ';');
        struct slice name = trimmed(cut_at(&value, '='));

        if (slice_is_word(name, "q")) {
            quality = read_quality(trimmed(value));
        }
    }
    if (slice_is_word(type, "application/openmetrics-text")) {
        best = &parser->open_quality;
    } else if (slice_is_word(type, "text/plain")) {
        best = &parser->text_quality;
    }
    if (best != NULL && quality > *best) {
        *best = quality;
    }
}

static unsigned
read_field(struct parser *parser, struct slice line)
{
    struct slice rest = line;
    struct slice name = cut_at(&rest, ':');
    struct slice value = trimmed(rest);

    if (name.len == line.len || !is_token(name)) {
        return 400;
    }
    if (slice_is_word(name, "host")) {
        if (parser->has_host) {
            return 400;
        }
        parser->has_host = true;
        parser->head->host = value;
    } else if (slice_is_word(name, "accept")) {
        while (value.len > 0) {
            read_accepted(parser, cut_at(&value, ','));
        }
    }
    return 0;
}

/* ---- the whole ----------------------------------------------------------- */

static enum http_result
refuse_head(struct http_head *head, unsigned status)
{
    *head = (struct http_head){ .status = status };
    return HTTP_BAD;
}

static enum http_result
finish(struct parser *parser)
{
    if (parser->is_1_1 && !parser->has_host) {
        return refuse_head(parser->head, 400);
    }
    parser->head->open_metrics = parser->open_quality > 0 &&
                                 parser->open_quality >= parser->text_quality;
    return HTTP_DONE;
}

enum http_result
http_head_parse(struct slice bytes, struct http_head *ret_head)
{
    struct parser parser = { .head = ret_head };
    size_t len = bytes.len < HTTP_HEAD_MAX ? bytes.len : HTTP_HEAD_MAX;
    size_t at = 0;

    *ret_head = (struct http_head){ .status = 0 };
    for (bool first = true;; first = false) {
        struct slice left = { bytes.data + at, len - at };
        const char *end =
            left.len > 0 ? memmem(left.data, left.len, "\r\n", 2) : NULL;
        struct slice line = { left.data, left.len };
        unsigned status;

        if (end != NULL) {
            line.len = (size_t)(end - left.data);
        } else if (line.len > 0 && line.data[line.len - 1] == '\r') {
            line.len--; /* an LF may follow the CR */
        }
        if (has_control(line)) {
            return refuse_head(ret_head, 400);
        }
        if (end == NULL) {
            return len == HTTP_HEAD_MAX ? refuse_head(ret_head, 431)
                                        : HTTP_MORE;
        }
        if (line.len == 0 && !first) {
            return finish(&parser);
        }
        status = first ? read_request_line(&parser, line)
                       : read_field(&parser, line);
        if (status != 0) {
            return refuse_head(ret_head, status);
        }
        at += line.len + 2;
    }
}

/* ---- the host ------------------------------------------------------------ */

static bool
consists_of(struct slice s, const char *characters)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] == '\0' || strchr(characters, s.data[i]) == NULL) {
            return false;
        }
    }
    return s.len > 0;
}

/* No browser looks up a name in brackets, or of digits and dots alone. */
bool
http_host_is_plain(struct slice host)
{
    const char *hex = "0123456789abcdefABCDEF:.";
    struct slice rest = host;
    struct slice name;

    if (host.len > 0 && host.data[0] == '[') {
        rest.data++;
        rest.len--;
        name = cut_at(&rest, ']');
        return name.len + 2 <= host.len && consists_of(name, hex) &&
               (rest.len == 0 ||
                (rest.data[0] == ':' &&
                 consists_of((struct slice){ rest.data + 1, rest.len - 1 },
                             "0123456789")));
    }
    name = cut_at(&rest, ':');
    return (slice_is_word(name, "localhost") ||
            consists_of(name, "0123456789.")) &&
           (name.len == host.len || consists_of(rest, "0123456789"));
}
