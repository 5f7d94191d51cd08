/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The shortest digits are found by printing with rising precision until the
 * text reads back: at most 17 attempts, for replies that show a rate.
 */
#include "base/num.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool
num_parse_i64(struct slice text, int64_t *ret_value)
{
    bool negative = text.len > 0 && text.data[0] == '-';
    size_t at = text.len > 0 && (negative || text.data[0] == '+') ? 1 : 0;
    int64_t value = 0;

    if (at == text.len) {
        return false;
    }
    for (; at < text.len; at++) {
        int64_t digit = text.data[at] - '0';

        if (!is_digit(text.data[at]) ||
            __builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value)) {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

bool
num_parse_u32(struct slice text, uint32_t *ret_value)
{
    int64_t value = 0;

    if ((text.len > 0 && text.data[0] == '-') || !num_parse_i64(text, &value) ||
        value > UINT32_MAX) {
        return false;
    }
    *ret_value = (uint32_t)value;
    return true;
}

/* Skips one digit or more, with at most one point among them. */
static bool
skip_mantissa(struct slice text, size_t *ret_at)
{
    size_t at = *ret_at;
    size_t digits = 0;

    while (at < text.len && is_digit(text.data[at])) {
        at++;
        digits++;
    }
    if (at < text.len && text.data[at] == '.') {
        at++;
        while (at < text.len && is_digit(text.data[at])) {
            at++;
            digits++;
        }
    }
    *ret_at = at;
    return digits > 0;
}

static bool
skip_exponent(struct slice text, size_t *ret_at)
{
    size_t at = *ret_at;
    size_t first;

    if (at == text.len || (text.data[at] != 'e' && text.data[at] != 'E')) {
        return true;
    }
    at++;
    if (at < text.len && (text.data[at] == '+' || text.data[at] == '-')) {
        at++;
    }
    first = at;
    while (at < text.len && is_digit(text.data[at])) {
        at++;
    }
    *ret_at = at;
    return at > first;
}

static bool
is_double(struct slice text)
{
    size_t at = text.len > 0 && (text.data[0] == '-' || text.data[0] == '+');
    struct slice rest = { text.data + at, text.len - at };

    if (slice_is_word(rest, "inf") || slice_is_word(rest, "infinity") ||
        slice_is_word(rest, "nan")) {
        return true;
    }
    return skip_mantissa(text, &at) && skip_exponent(text, &at) &&
           at == text.len;
}

bool
num_parse_double(struct slice text, double *ret_value)
{
    char copy[512];

    if (text.len == 0 || text.len >= sizeof(copy) || !is_double(text)) {
        return false;
    }
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    *ret_value = strtod(copy, NULL);
    return true;
}

bool
num_parse_strtod(struct slice text, double *ret_value)
{
    char copy[512];
    char *end = copy;
    double value;

    if (text.len == 0 || text.len >= sizeof(copy) ||
        isspace((unsigned char)text.data[0]) != 0) {
        return false;
    }
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    errno = 0;
    value = strtod(copy, &end);
    if (end != copy + text.len || isnan(value) ||
        (errno == ERANGE && (isinf(value) || value == 0))) {
        return false;
    }
    *ret_value = value;
    return true;
}

static bool
unit_bytes(struct slice unit, uint64_t *ret_factor)
{
    static const struct {
        const char *name;
        uint64_t factor;
    } units[] = {
        { "", 1 },
        { "b", 1 },
        { "k", 1000 },
        { "kb", 1024 },
        { "m", 1000000 },
        { "mb", 1048576 },
        { "g", 1000000000 },
        { "gb", 1073741824 },
        { "t", 1000000000000 },
        { "tb", 1099511627776 },
    };

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (slice_is_word(unit, units[i].name)) {
            *ret_factor = units[i].factor;
            return true;
        }
    }
    return false;
}

bool
num_parse_bytes(struct slice text, uint64_t *ret_bytes)
{
    struct slice digits = text;
    struct slice unit;
    uint64_t value = 0;
    uint64_t factor = 1;

    while (digits.len > 0 && !is_digit(digits.data[digits.len - 1])) {
        digits.len--;
    }
    unit = (struct slice){ text.data + digits.len, text.len - digits.len };
    return slice_to_u64(digits, &value) && unit_bytes(unit, &factor) &&
           !__builtin_mul_overflow(value, factor, &value) &&
           (*ret_bytes = value, true);
}

/* Writes the digits of a value that has at most 15 of them, as most rates have,
 * without printf. `whole` and `power` are exact doubles, so their quotient is
 * the value that these digits mean, and no other 15 digits mean it. Returns the
 * number of digits, or 0 if this way finds none. */
static int
few_digits(double value, char ret_digits[24], int *ret_exponent)
{
    double power = 1;

    for (int places = 0; places <= 15; places++) {
        double scaled = value * power + 0.5;
        uint64_t whole = scaled < 1e15 ? (uint64_t)scaled : 0;

        if (whole > 0 && (double)whole / power == value) {
            *ret_exponent = -places;
            return (int)num_format_u64(whole, ret_digits);
        }
        power *= 10;
    }
    return 0;
}

/* Does the same for any finite positive value. */
static int
shortest_of_all(double value, char ret_digits[24], int *ret_exponent)
{
    char text[40];
    int count = 0;
    const char *at;

    for (int precision = 0; precision <= 16; precision++) {
        (void)snprintf(text, sizeof(text), "%.*e", precision, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    for (at = text; *at != 'e'; at++) {
        if (is_digit(*at)) {
            ret_digits[count++] = *at;
        }
    }
    *ret_exponent = (int)strtol(at + 1, NULL, 10) - (count - 1);
    return count;
}

/* Writes the shortest decimal digits of a finite positive value, without a
 * point, and the exponent of the last one: value = digits x 10^exponent. */
static int
shortest_digits(double value, char ret_digits[24], int *ret_exponent)
{
    int count = few_digits(value, ret_digits, ret_exponent);

    if (count == 0) {
        count = shortest_of_all(value, ret_digits, ret_exponent);
    }
    while (count > 1 && ret_digits[count - 1] == '0') {
        count--;
        (*ret_exponent)++;
    }
    ret_digits[count] = '\0';
    return count;
}

static size_t
format_special(double value, char *ret_text)
{
    const char *text = isnan(value)  ? "nan"
                       : value == 0  ? "0"
                       : value > 0.0 ? "inf"
                                     : "-inf";
    size_t len = strlen(text);

    memcpy(ret_text, text, len + 1);
    return len;
}

size_t
num_format_u64(uint64_t value, char *ret_text)
{
    char digits[NUM_U64_MAX];
    size_t first = sizeof(digits);

    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    memcpy(ret_text, digits + first, sizeof(digits) - first);
    return sizeof(digits) - first;
}

/* Writes digits x 10^exponent as a plain decimal. */
static size_t
write_plain(const char *digits, int count, int exponent, char *ret_text)
{
    char *to = ret_text;
    int whole = count + exponent; /* digits before the point */

    if (whole <= 0) {
        *to++ = '0';
        *to++ = '.';
        for (int i = whole; i < 0; i++) {
            *to++ = '0';
        }
    }
    for (int i = 0; i < count; i++) {
        if (i == whole && whole > 0) {
            *to++ = '.';
        }
        *to++ = digits[i];
    }
    for (int i = 0; i < exponent; i++) {
        *to++ = '0';
    }
    *to = '\0';
    return (size_t)(to - ret_text);
}

size_t
num_format_plain(double value, char *ret_text)
{
    char digits[24];
    int exponent = 0;
    int count;
    size_t sign = value < 0 ? 1 : 0;

    if (!isfinite(value) || value == 0) {
        return format_special(value, ret_text);
    }
    if (sign > 0) {
        *ret_text = '-';
    }
    count = shortest_digits(fabs(value), digits, &exponent);
    return sign + write_plain(digits, count, exponent, ret_text + sign);
}

size_t
num_format_double(double value, char *ret_text)
{
    char digits[24];
    int exponent = 0;
    int count;
    int magnitude;
    size_t sign = value < 0 ? 1 : 0;
    char *to = ret_text + sign;

    if (!isfinite(value) || value == 0) {
        return format_special(value, ret_text);
    }
    if (sign > 0) {
        *ret_text = '-';
    }
    count = shortest_digits(fabs(value), digits, &exponent);
    magnitude = abs(exponent + count - 1);
    if ((exponent >= 0 && exponent + count <= 17) ||
        (exponent < 0 && (exponent > -7 || magnitude < 4))) {
        return sign + write_plain(digits, count, exponent, to);
    }
    *to++ = digits[0];
    if (count > 1) {
        *to++ = '.';
        memcpy(to, digits + 1, (size_t)count - 1);
        to += count - 1;
    }
    to += snprintf(to, 8, "e%s%d", exponent + count - 1 < 0 ? "-" : "+",
                   magnitude);
    return (size_t)(to - ret_text);
}
