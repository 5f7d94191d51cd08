/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Digits by table, values by range.
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

bool
hex_get_u64(const char *digits, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (int i = 0; i < HEX_U64_CHARS; i++) {
        char c = digits[i];

        if (c >= '0' && c <= '9') {
            value = value << 4 | (uint64_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        } else {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

bool
hex_parse_u64(struct slice text, uint64_t *ret_value)
{
    return text.len == HEX_U64_CHARS && hex_get_u64(text.data, ret_value);
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
