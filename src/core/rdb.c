/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every read goes through take_bytes(), which notes the first mistake.
 */
#include "core/rdb.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/little.h"
#include "core/lzf.h"

enum { FORM_6 = 0, FORM_14 = 1, FORM_LONG = 2, BITS_32 = 0x80, BITS_64 = 0x81 };

/* ---- reading ------------------------------------------------------------- */

/* Returns the next bytes; NULL if there are fewer. */
static const uint8_t *
take_bytes(struct rdb_in *in, uint64_t len)
{
    const uint8_t *at = in->at;

    if (in->failed || len > in->left) {
        in->failed = true;
        in->left = 0;
        return NULL;
    }
    in->at += len;
    in->left -= (size_t)len;
    return at;
}

uint8_t
rdb_byte(struct rdb_in *in)
{
    const uint8_t *at = take_bytes(in, 1);

    return at != NULL ? *at : 0;
}

static uint64_t
take_big(struct rdb_in *in, unsigned bytes)
{
    const uint8_t *at = take_bytes(in, bytes);
    uint64_t value = 0;

    for (unsigned i = 0; at != NULL && i < bytes; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

size_t
rdb_length_more(uint8_t first)
{
    switch (first >> 6) {
    case FORM_6:
        return 0;
    case FORM_14:
        return 1;
    default:
        return first == BITS_32 ? 4 : first == BITS_64 ? 8 : SIZE_MAX;
    }
}

/* Returns the length that begins with this byte. */
static uint64_t
length_from(struct rdb_in *in, uint8_t first)
{
    size_t more = rdb_length_more(first);
    uint64_t low = first >> 6 == FORM_LONG ? 0 : first & 0x3f;

    if (more > RDB_LENGTH_MORE_MAX) {
        (void)take_bytes(in, UINT64_MAX);
        return 0;
    }
    return more > 0
               ? (more < 8 ? low << 8 * more : 0) | take_big(in, (unsigned)more)
               : low;
}

uint64_t
rdb_length(struct rdb_in *in)
{
    uint64_t length = length_from(in, rdb_byte(in));

    return in->failed ? 0 : length;
}

static void
take_number(struct rdb_in *in, uint8_t first, struct rdb_string *ret_string)
{
    size_t bytes = (size_t)1 << (first - RDB_SPECIAL_8);
    const uint8_t *at = take_bytes(in, bytes);
    int64_t value;

    if (at == NULL) {
        return;
    }
    value = bytes == 1   ? (int8_t)at[0]
            : bytes == 2 ? (int16_t)get_u16(at)
                         : (int32_t)get_u32(at);
    ret_string->data_len = (size_t)snprintf(
        ret_string->number, sizeof(ret_string->number), "%" PRId64, value);
    ret_string->is_number = true;
    ret_string->len = ret_string->data_len;
}

void
rdb_string(struct rdb_in *in, struct rdb_string *ret_string)
{
    uint8_t first = rdb_byte(in);
    struct rdb_string string = { 0 };

    if (first >= RDB_SPECIAL_8 && first <= RDB_SPECIAL_32) {
        take_number(in, first, &string);
    } else {
        string.is_lzf = first == RDB_SPECIAL_LZF;
        string.len = string.is_lzf ? rdb_length(in) : length_from(in, first);
        string.data_len = (size_t)string.len;
        if (string.is_lzf) {
            string.len = rdb_length(in);
        }
        string.data = take_bytes(in, string.data_len);
    }
    if (in->failed) {
        string = (struct rdb_string){ 0 };
    }
    *ret_string = string;
}

bool
rdb_expand(const struct rdb_string *string, void *ret_bytes, size_t len)
{
    if (len > string->len) {
        return false;
    }
    if (string->is_lzf) {
        const struct slice packed = { (const char *)string->data,
                                      string->data_len };

        return len == string->len ? lzf_unpack(packed, ret_bytes, len)
                                  : lzf_unpack_start(packed, ret_bytes, len);
    }
    if (len > 0) {
        memcpy(ret_bytes,
               string->is_number ? (const void *)string->number
                                 : (const void *)string->data,
               len);
    }
    return true;
}

/* ---- fields -------------------------------------------------------------- */

static void
expect(struct rdb_in *in, enum rdb_opcode opcode)
{
    if (rdb_length(in) != (uint64_t)opcode) {
        (void)take_bytes(in, UINT64_MAX);
    }
}

uint64_t
rdb_field_uint(struct rdb_in *in)
{
    expect(in, RDB_UINT);
    return rdb_length(in);
}

double
rdb_field_double(struct rdb_in *in)
{
    const uint8_t *at;

    expect(in, RDB_DOUBLE);
    at = take_bytes(in, 8);
    return at != NULL ? get_double(at) : 0;
}

void
rdb_field_string(struct rdb_in *in, struct rdb_string *ret_string)
{
    expect(in, RDB_STRING);
    rdb_string(in, ret_string);
}

/* ---- writing ------------------------------------------------------------- */

void
rdb_put(struct rdb_out *out, const void *data, size_t len)
{
    if (out->to != NULL && len > 0) {
        memcpy(out->to + out->len, data, len);
    }
    out->len += len;
}

static void
put_long(struct rdb_out *out, uint8_t first, uint64_t value, unsigned bytes)
{
    uint8_t text[1 + sizeof(value)] = { first };

    for (unsigned i = 0; i < bytes; i++) {
        text[1 + i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    }
    rdb_put(out, text, 1 + bytes);
}

void
rdb_put_id(struct rdb_out *out, uint64_t id)
{
    put_long(out, BITS_64, id, 8);
}

void
rdb_put_length(struct rdb_out *out, uint64_t length)
{
    if (length < 1U << 6) {
        put_long(out, (uint8_t)length, 0, 0);
    } else if (length < 1U << 14) {
        put_long(out, (uint8_t)(FORM_14 << 6 | length >> 8), length, 1);
    } else if (length <= UINT32_MAX) {
        put_long(out, BITS_32, length, 4);
    } else {
        rdb_put_id(out, length);
    }
}

void
rdb_put_uint(struct rdb_out *out, uint64_t value)
{
    rdb_put_length(out, RDB_UINT);
    rdb_put_length(out, value);
}

void
rdb_put_double(struct rdb_out *out, double value)
{
    uint8_t bytes[8];

    put_double(bytes, value);
    rdb_put_length(out, RDB_DOUBLE);
    rdb_put(out, bytes, sizeof(bytes));
}

void
rdb_put_string_head(struct rdb_out *out, uint64_t len)
{
    rdb_put_length(out, RDB_STRING);
    rdb_put_length(out, len);
}
