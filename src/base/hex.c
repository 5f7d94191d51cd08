/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Takes digits from a table, and finds the value of a digit by comparing it
 * with the ranges 0 to 9 and a to f.
 */
#include "base/hex.h"

static const char digits_of[] = "0123456789abcdef";

void
hex_put_u64(char *ret_digits, uint64_t value)
{
    for (int i = HEX_U64_CHARS - 1; i >= 0; i--) {
        ret_digits[i] = digits_of[value & 15];
        value >>= 4;
    }
}

/* Returns the value of a digit; 16: it is none. */
static unsigned
value_of(char c)
{
    if (c >= '0' && c <= '9') {
        return (unsigned)(c - '0');
    }
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 16;
}

bool
hex_get_u64(const char *digits, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (int i = 0; i < HEX_U64_CHARS; i++) {
        unsigned digit = value_of(digits[i]);

        if (digit == 16) {
            return false;
        }
        value = value << 4 | digit;
    }
    *ret_value = value;
    return true;
}

bool
hex_parse_u64(struct slice text, uint64_t *ret_value)
{
    return text.len == HEX_U64_CHARS && hex_get_u64(text.data, ret_value);
}

bool
hex_is_digits(struct slice text, size_t count)
{
    for (size_t i = 0; i < text.len; i++) {
        if (value_of(text.data[i]) == 16) {
            return false;
        }
    }
    return text.len == count;
}

bool
hex_get_bytes(struct slice text, void *ret_bytes, size_t len)
{
    uint8_t *to = ret_bytes;

    if (text.len != 2 * len) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        unsigned high = value_of(text.data[2 * i]);
        unsigned low = value_of(text.data[2 * i + 1]);

        if (high == 16 || low == 16) {
            return false;
        }
        to[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

int
hex_escaped_byte(char high, char low)
{
    unsigned values[2];
    const char digits[2] = { high, low };

    for (int i = 0; i < 2; i++) {
        char c = digits[i];

        if (c >= 'A' && c <= 'F') {
            c = (char)(c | 0x20);
        }
        values[i] = value_of(c);
        if (values[i] == 16) {
            return -1;
        }
    }
    return (int)(values[0] << 4 | values[1]);
}

void
hex_put_bytes(char *ret_text, const void *bytes, size_t len)
{
    const uint8_t *from = bytes;

    for (size_t i = 0; i < len; i++) {
        *ret_text++ = digits_of[from[i] >> 4];
        *ret_text++ = digits_of[from[i] & 15];
    }
    *ret_text = '\0';
}
