/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compares byte strings, and parses numbers strictly.
 */
#include "base/slice.h"

bool
slice_is_word(struct slice s, const char *text)
{
    for (size_t i = 0; i < s.len; i++) {
        if (text[i] == '\0' || slice_fold(s.data[i]) != slice_fold(text[i])) {
            return false;
        }
    }
    return text[s.len] == '\0';
}

bool
slice_to_u64(struct slice s, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (s.len == 0 || (s.len > 1 && s.data[0] == '0')) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned char)s.data[i] - (unsigned)'0';

        if (digit > 9 || __builtin_mul_overflow(value, 10U, &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

bool
slice_to_i64(struct slice s, int64_t *ret_value)
{
    bool negative = s.len > 0 && s.data[0] == '-';
    uint64_t magnitude = 0;

    if (negative) {
        s.data++;
        s.len--;
        if (s.len > 0 && s.data[0] == '0') {
            return false;
        }
    }
    if (!slice_to_u64(s, &magnitude) ||
        magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
        return false;
    }
    *ret_value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

bool
slice_has_space(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];

        if (is_blank(c) || (c >= '\t' && c <= '\r') || c == '\0') {
            return true;
        }
    }
    return false;
}

bool
slice_next_word(struct slice *text, struct slice *ret_word)
{
    size_t from = 0;
    size_t to;

    while (from < text->len && is_blank(text->data[from])) {
        from++;
    }
    to = from;
    while (to < text->len && !is_blank(text->data[to])) {
        to++;
    }
    if (to == from) {
        return false;
    }
    *ret_word = (struct slice){ text->data + from, to - from };
    *text = (struct slice){ text->data + to, text->len - to };
    return true;
}

bool
slice_take(struct slice *text, const char *front)
{
    size_t len = strlen(front);

    if (text->len < len || memcmp(text->data, front, len) != 0) {
        return false;
    }
    *text = (struct slice){ text->data + len, text->len - len };
    return true;
}

bool
slice_take_until(struct slice *text, char end, struct slice *ret_bytes)
{
    const char *at = text->len > 0 ? memchr(text->data, end, text->len) : NULL;
    size_t len;

    if (at == NULL) {
        return false;
    }
    len = (size_t)(at - text->data);
    *ret_bytes = (struct slice){ text->data, len };
    *text = (struct slice){ at + 1, text->len - len - 1 };
    return true;
}

bool
slice_next_line(struct slice *text, struct slice *ret_line)
{
    struct slice line;

    if (text->len == 0) {
        return false;
    }
    if (!slice_take_until(text, '\n', &line)) {
        line = *text;
        *text = (struct slice){ text->data + text->len, 0 };
    }
    if (line.len > 0 && line.data[line.len - 1] == '\r') {
        line.len--;
    }
    *ret_line = line;
    return true;
}
