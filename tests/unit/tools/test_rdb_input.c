/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lengths and strings of an RDB, from a source that gives one byte at a time or
 * all of them: every form, every cut, and claims of more than there is.
 */
#include "tools/rdb_input.h"

#include "../test.h"

#include <stdlib.h>
#include <string.h>

struct bytes {
    const char *data;
    size_t len, step;
};

/* Gives the bytes from memory of their own, for the sanitizer's sake. */
static bool
next(void *ctx, struct slice *ret_bytes)
{
    static char *piece;
    struct bytes *bytes = ctx;
    size_t len = bytes->len < bytes->step ? bytes->len : bytes->step;

    free(piece);
    piece = NULL;
    if (len == 0) {
        return false;
    }
    piece = malloc(len);
    assert_non_null(piece);
    memcpy(piece, bytes->data, len);
    bytes->data += len;
    bytes->len -= len;
    *ret_bytes = (struct slice){ piece, len };
    return true;
}

/* An input over bytes in memory, which gives `step` of them at a time. */
struct reader {
    struct bytes bytes;
    struct rdb_source source;
    struct rdb_input input;
};

static struct rdb_input *
begin(struct reader *reader, const void *data, size_t len, size_t step)
{
    *reader = (struct reader){ .bytes = { data, len, step } };
    reader->source = (struct rdb_source){ next, &reader->bytes };
    reader->input.source = &reader->source;
    reader->input.bytes = (struct slice){ "", 0 };
    reader->input.summed = reader->input.bytes.data;
    return &reader->input;
}

#define BYTES(text) text, sizeof(text) - 1

TEST(lengths_of_all_forms_are_read)
{
    static const struct {
        const char *data;
        size_t len;
        uint64_t value;
    } cases[] = {
        { BYTES("\x00"), 0 },
        { BYTES("\x3f"), 63 },
        { BYTES("\x40\x05"), 5 },
        { BYTES("\x7f\xff"), 16383 },
        { BYTES("\x80\x01\x02\x03\x04"), 0x01020304 },
        { BYTES("\x81\xff\xff\xff\xff\xff\xff\xff\xfe"), UINT64_MAX - 1 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t step = 1; step < 12; step += 5) {
            struct reader reader;
            struct rdb_input *input =
                begin(&reader, cases[i].data, cases[i].len, step);
            uint64_t value = 7;

            assert_true(rdb_take_length(input, &value));
            assert_int_equal(cases[i].value, value);
            assert_int_equal(cases[i].len, input->offset);
        }
        for (size_t cut = 0; cut < cases[i].len; cut++) {
            struct reader reader;
            struct rdb_input *input = begin(&reader, cases[i].data, cut, 3);
            uint64_t value = 7;

            assert_false(rdb_take_length(input, &value));
            assert_int_equal(RDB_CUT, input->status);
            assert_int_equal(cut, input->failed_at);
        }
    }
}

TEST(what_is_no_length_is_damage)
{
    for (unsigned first = 0x82; first < 0x100; first++) {
        char byte = (char)first;
        struct reader reader;
        struct rdb_input *input = begin(&reader, &byte, 1, 1);
        uint64_t value;

        assert_false(rdb_take_length(input, &value));
        assert_int_equal(RDB_DAMAGED, input->status);
        assert_int_equal(0, input->failed_at);
    }
}

static void
assert_string(const char *data, size_t len, const char *text, size_t text_len)
{
    for (size_t step = 1; step < 40; step += 13) {
        struct reader reader;
        struct rdb_input *input = begin(&reader, data, len, step);
        struct buf buf = { .limit = 1000 };

        assert_true(rdb_take_string(input, &buf));
        assert_int_equal(text_len, buf.len);
        assert_memory_equal(text, buf.len > 0 ? buf.data : "", text_len);
        assert_int_equal(len, input->offset);
        buf_free(&buf);
        assert_true(rdb_take_string(begin(&reader, data, len, step), NULL));
        assert_int_equal(len, reader.input.offset);
    }
    for (size_t cut = 0; cut < len; cut++) {
        struct reader reader;
        struct buf buf = { .limit = 1000 };

        assert_false(rdb_take_string(begin(&reader, data, cut, 2), &buf));
        assert_int_equal(RDB_CUT, reader.input.status);
        buf_free(&buf);
    }
}

TEST(strings_of_all_forms_are_read)
{
    assert_string(BYTES("\x00"), BYTES(""));
    assert_string(BYTES("\x03"
                        "abc"),
                  BYTES("abc"));
    assert_string(BYTES("\xc0\x80"), BYTES("-128"));
    assert_string(BYTES("\xc1\xff\x7f"), BYTES("32767"));
    assert_string(BYTES("\xc2\x00\x00\x00\x80"), BYTES("-2147483648"));
    assert_string(BYTES("\xc3\x06\x07\x02xyz\x40\x02"), BYTES("xyzxyzx"));
}

/* The declared length is never allocated before its bytes are there. */
TEST(claims_of_more_than_there_is_cost_nothing)
{
    static const char *const claims[] = {
        "\x81\x7f\xff\xff\xff\xff\xff\xff\xff"
        "abc",
        "\xc3\x81\x7f\xff\xff\xff\xff\xff\xff\xff\x05"
        "abc",
        "\xc3\x03\x81\x7f\xff\xff\xff\xff\xff\xff\xff"
        "\x01"
        "ab",
    };
    static const size_t lens[] = { 12, 14, 14 };

    for (size_t i = 0; i < 3; i++) {
        struct reader reader;
        struct buf buf = { .limit = SIZE_MAX };
        bool ok = rdb_take_string(begin(&reader, claims[i], lens[i], 5), &buf);

        assert_true(!ok || buf.failed);
        assert_true(buf.capacity < 4096);
        buf_free(&buf);
    }
}

TEST(a_string_above_the_limit_is_skipped)
{
    struct reader reader;
    struct rdb_input *input = begin(&reader,
                                    BYTES("\x05"
                                          "abcde\x01"
                                          "x"),
                                    3);
    struct buf buf = { .limit = 4 };

    assert_true(rdb_take_string(input, &buf));
    assert_true(buf.failed);
    buf_reset(&buf, 4);
    assert_true(rdb_take_string(input, &buf));
    assert_int_equal(1, buf.len);
    buf_free(&buf);
}

TEST(damaged_packed_strings_are_refused)
{
    static const char *const cases[] = {
        "\xc3\x02\x05\x20\x00", /* a copy of nothing */
        "\xc3\x02\x01\x05x",    /* fewer literals than announced */
        "\xc3\x00\x05",         /* no bytes */
        "\xc3\x00\x00",         /* an empty string, which nobody packs */
    };
    static const size_t lens[] = { 5, 5, 3, 3 };

    for (size_t i = 0; i < 8; i++) {
        struct reader reader;
        struct buf buf = { .limit = 1000 };

        if (i >= 4) { /* behind another string */
            buf_append_slice(&buf, slice_lit("before"));
        }
        assert_false(rdb_take_string(
            begin(&reader, cases[i % 4], lens[i % 4], 9), &buf));
        assert_int_equal(RDB_DAMAGED, reader.input.status);
        buf_free(&buf);
    }
}
