/* SPDX-License-Identifier: BSD-3-Clause
 *
 * core/rdb.h draws lengths and strings, and reads lengths.
 */
#include "tools/rdb_input.h"

#include "core/crc64.h"
#include "core/lzf.h"
#include "core/rdb.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- bytes --------------------------------------------------------------- */

bool
rdb_fail(struct rdb_input *input, enum rdb_status status, uint64_t offset,
         const char *format, ...)
{
    va_list args;

    input->status = status;
    input->failed_at = offset;
    va_start(args, format);
    (void)vsnprintf(input->why, sizeof(input->why), format, args);
    va_end(args);
    return false;
}

uint64_t
rdb_sum(struct rdb_input *input)
{
    input->crc = crc64(input->crc, input->summed,
                       (size_t)(input->bytes.data - input->summed));
    input->summed = input->bytes.data;
    return input->crc;
}

/* Makes sure that there is a byte. */
static bool
fill(struct rdb_input *input)
{
    if (input->bytes.len > 0) {
        return true;
    }
    (void)rdb_sum(input);
    if (!input->source->next(input->source->ctx, &input->bytes)) {
        input->bytes = (struct slice){ input->summed, 0 };
        return rdb_fail(input, RDB_CUT, input->offset, "it ends in the middle");
    }
    input->summed = input->bytes.data;
    return true;
}

/* Passes over `len` bytes that are there, and keeps them while `keeps`. */
static void
pass(struct rdb_input *input, size_t len)
{
    if (input->keeps) {
        buf_append(&input->value, input->bytes.data, len);
        /* A value that is too long is read to its end all the same. */
        input->keeps = !input->value.failed;
    }
    input->bytes.data += len;
    input->bytes.len -= len;
    input->offset += len;
}

bool
rdb_take(struct rdb_input *input, void *to, size_t len)
{
    char *at = to;

    while (len > 0) {
        size_t step;

        if (!fill(input)) {
            return false;
        }
        step = len < input->bytes.len ? len : input->bytes.len;
        memcpy(at, input->bytes.data, step);
        pass(input, step);
        at += step;
        len -= step;
    }
    return true;
}

/* Appends bytes to a buffer; beyond its limit they are skipped and the buffer
 * has failed. */
static bool
take_long(struct rdb_input *input, struct buf *to, uint64_t len)
{
    while (len > 0) {
        size_t step;

        if (!fill(input)) {
            return false;
        }
        step = len < input->bytes.len ? (size_t)len : input->bytes.len;
        if (to != NULL && !to->failed) {
            buf_append(to, input->bytes.data, step);
        }
        pass(input, step);
        len -= step;
    }
    return true;
}

bool
rdb_skip(struct rdb_input *input, uint64_t len)
{
    return take_long(input, NULL, len);
}

/* ---- lengths and strings ------------------------------------------------- */

/* Reads a length, and sets *ret_special to 0. If a special string is in its
 * place, only sets *ret_special to the first byte of that string. */
static bool
take_length_or_special(struct rdb_input *input, uint64_t *ret_length,
                       uint8_t *ret_special)
{
    uint64_t at = input->offset;
    uint8_t bytes[1 + RDB_LENGTH_MORE_MAX];
    struct rdb_in in = { .at = bytes };
    size_t more;

    *ret_special = 0;
    if (!rdb_take(input, bytes, 1)) {
        return false;
    }
    if (bytes[0] >= RDB_SPECIAL_8 && bytes[0] <= RDB_SPECIAL_LZF) {
        *ret_special = bytes[0];
        return true;
    }
    more = rdb_length_more(bytes[0]);
    if (more > RDB_LENGTH_MORE_MAX) {
        return rdb_fail(input, RDB_DAMAGED, at,
                        "no length begins with byte 0x%02x", bytes[0]);
    }
    if (!rdb_take(input, bytes + 1, more)) {
        return false;
    }
    in.left = 1 + more;
    *ret_length = rdb_length(&in);
    return true;
}

bool
rdb_take_length(struct rdb_input *input, uint64_t *ret_length)
{
    uint64_t at = input->offset;
    uint8_t special;

    if (!take_length_or_special(input, ret_length, &special)) {
        return false;
    }
    return special == 0 || rdb_fail(input, RDB_DAMAGED, at,
                                    "a string is where a length must be");
}

static bool
take_number(struct rdb_input *input, uint8_t special, struct buf *to)
{
    uint8_t bytes[5] = { special };
    size_t len = (size_t)1 << (special - RDB_SPECIAL_8);
    struct rdb_in in = { .at = bytes, .left = 1 + len };
    struct rdb_string string;

    if (!rdb_take(input, bytes + 1, len)) {
        return false;
    }
    rdb_string(&in, &string);
    if (to != NULL) {
        buf_append(to, string.number, string.data_len);
    }
    return true;
}

/* Reads a packed string. Appends its text to the buffer, if there is one. */
static bool
take_packed(struct rdb_input *input, struct buf *to)
{
    uint64_t at = input->offset;
    uint64_t packed_len = 0, len = 0;
    struct buf packed = { .limit = to != NULL ? to->limit : 0 };
    char *space;
    bool ok;

    if (!rdb_take_length(input, &packed_len) || !rdb_take_length(input, &len)) {
        return false;
    }
    if (to == NULL) {
        return rdb_skip(input, packed_len);
    }
    ok = take_long(input, &packed, packed_len);
    if (ok && !to->failed) {
        /* Three packed bytes stand for at most 264 bytes. Nobody packs an
         * empty string. */
        space = packed.failed || len == 0 || len / 88 > packed.len
                    ? NULL
                    : buf_reserve(to, (size_t)len);
        if (packed.failed || (space == NULL && to->failed)) {
            to->failed = true;
            to->over = to->over || packed.over;
        } else if (space == NULL ||
                   !lzf_unpack(buf_slice(&packed), space, (size_t)len)) {
            ok = rdb_fail(input, RDB_DAMAGED, at, "a packed string is damaged");
        } else {
            to->len += (size_t)len;
        }
    }
    buf_free(&packed);
    return ok;
}

bool
rdb_take_string(struct rdb_input *input, struct buf *to)
{
    uint64_t length = 0;
    uint8_t special;

    if (!take_length_or_special(input, &length, &special)) {
        return false;
    }
    switch (special) {
    case 0:
        return take_long(input, to, length);
    case RDB_SPECIAL_LZF:
        return take_packed(input, to);
    default:
        return take_number(input, special, to);
    }
}
