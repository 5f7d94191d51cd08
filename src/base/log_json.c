/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values in quotes are not escaped in logfmt. So a value ends at a quote that
 * is followed by the end of the line or by the next field.
 */
#include "base/log_json.h"

#include "base/slice.h"

#include <stdbool.h>
#include <stdio.h>

/* An object while it is written. ENDS bytes are reserved for its end. */
enum { ENDS = 2, NUMBER_MAX = 15 };
struct object {
    char *line;
    size_t len, size;
    bool full;
};

static void
put_bytes(struct object *object, struct slice bytes)
{
    if (object->full || object->len + bytes.len + ENDS > object->size) {
        object->full = true;
        return;
    }
    memcpy(object->line + object->len, bytes.data, bytes.len);
    object->len += bytes.len;
}

/* Returns the length of the UTF-8 character that a text begins with; 0: its
 * first bytes are not valid UTF-8. */
static size_t
utf8_length(struct slice text)
{
    const unsigned char *at = (const unsigned char *)text.data;
    size_t len = at[0] < 0x80                     ? 1
                 : at[0] >= 0xc2 && at[0] <= 0xdf ? 2
                 : at[0] >= 0xe0 && at[0] <= 0xef ? 3
                 : at[0] >= 0xf0 && at[0] <= 0xf4 ? 4
                                                  : 0;

    if (len > text.len) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    /* Overlong encodings, surrogates, and code points beyond U+10FFFF are not
     * valid. */
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
        (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f)) {
        return 0;
    }
    return len;
}

/* Writes a string, which may be cut. False: not even its quotes fit. */
static bool
put_string(struct object *object, struct slice text)
{
    put_bytes(object, slice_lit("\""));
    if (object->full) {
        return false;
    }
    while (text.len > 0 && !object->full) {
        size_t len = utf8_length(text);
        unsigned char c = (unsigned char)text.data[0];
        char escape[8];

        if (len == 0) {
            put_bytes(object, slice_lit("\xef\xbf\xbd"));
            len = 1;
        } else if (c < 0x20 || c == 0x7f) {
            (void)snprintf(escape, sizeof(escape), "\\u%04x", c);
            put_bytes(object, slice_of(escape));
        } else if (c == '"' || c == '\\') {
            put_bytes(object, c == '"' ? slice_lit("\\\"") : slice_lit("\\\\"));
        } else {
            put_bytes(object, (struct slice){ text.data, len });
        }
        text.data += len;
        text.len -= len;
    }
    object->line[object->len++] = '"'; /* ENDS has a place for it */
    return true;
}

/* Returns whether a text is a number in JSON, and short enough to be exact. */
static bool
is_number(struct slice text)
{
    size_t at = text.len > 0 && text.data[0] == '-' ? 1 : 0;
    size_t digits = 0;

    if (text.len > NUMBER_MAX || at == text.len ||
        (text.data[at] == '0' && at + 1 < text.len &&
         text.data[at + 1] != '.')) {
        return false;
    }
    for (; at < text.len; at++) {
        if (text.data[at] == '.' && digits > 0 && at + 1 < text.len &&
            memchr(text.data, '.', at) == NULL) {
            continue;
        }
        if (text.data[at] < '0' || text.data[at] > '9') {
            return false;
        }
        digits++;
    }
    return true;
}

static void
put_member(struct object *object, struct slice name, struct slice value,
           bool number)
{
    size_t before = object->len;

    put_bytes(object, slice_lit(","));
    (void)put_string(object, name);
    put_bytes(object, slice_lit(":"));
    if (number) {
        put_bytes(object, value);
    } else if (!object->full && put_string(object, value)) {
        return;
    }
    if (object->full) {
        object->len = before;
    }
}

/* Returns the length of a field's name at the beginning of a text, without the
 * '='; 0: there is none. */
static size_t
name_length(struct slice text)
{
    size_t len = 0;

    while (len < text.len &&
           ((text.data[len] >= 'a' && text.data[len] <= 'z') ||
            (text.data[len] >= '0' && text.data[len] <= '9' && len > 0) ||
            ((text.data[len] == '_' || text.data[len] == '-') && len > 0))) {
        len++;
    }
    return len < text.len && text.data[len] == '=' ? len : 0;
}

static struct slice
behind(struct slice text, size_t n)
{
    return (struct slice){ text.data + n, text.len - n };
}

/* Returns the length of a value whose opening quote was before the text. */
static size_t
quoted_length(struct slice text)
{
    for (size_t at = 0; at < text.len; at++) {
        if (text.data[at] == '"' &&
            (at + 1 == text.len || (text.data[at + 1] == ' ' &&
                                    name_length(behind(text, at + 2)) > 0))) {
            return at;
        }
    }
    return text.len; /* the line was cut */
}

/* Writes the field that a text begins with, and returns the text behind it. */
static struct slice
put_field(struct object *object, struct slice text)
{
    size_t len = name_length(text);
    struct slice name = { text.data, len };
    struct slice value;

    if (len == 0) {
        put_member(object, slice_lit("detail"), text, false);
        return (struct slice){ text.data, 0 };
    }
    text = behind(text, len + 1);
    if (text.len > 0 && text.data[0] == '"') {
        text = behind(text, 1);
        value = (struct slice){ text.data, quoted_length(text) };
        put_member(object, name, value, false);
        return behind(text, value.len + (value.len < text.len ? 1 : 0));
    }
    value.data = text.data;
    for (value.len = 0; value.len < text.len && text.data[value.len] != ' ';) {
        value.len++;
    }
    put_member(object, name, value, is_number(value));
    return behind(text, value.len);
}

size_t
log_json_write(char *ret_line, size_t size, const struct log_parts *parts)
{
    struct object object = { .line = ret_line, .size = size };
    struct slice rest = slice_of(parts->fields);

    put_bytes(&object, slice_lit("{\"time\":"));
    (void)put_string(&object, slice_of(parts->time));
    put_member(&object, slice_lit("level"), slice_of(parts->level), false);
    put_member(&object, slice_lit("source"), slice_of(parts->source), false);
    put_member(&object, slice_lit("event"), slice_of(parts->event), false);
    while (rest.len > 0 && !object.full) {
        if (rest.data[0] == ' ') {
            rest = behind(rest, 1);
        } else {
            rest = put_field(&object, rest);
        }
    }
    ret_line[object.len++] = '}';
    return object.len;
}
