/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lengths, strings and fields of RDB files, and damaged ones.
 */
#include "core/rdb.h"

#include <string.h>

#include "../test.h"

static struct rdb_in
in_of(const void *data, size_t len)
{
    return (struct rdb_in){ .at = data, .left = len };
}

TEST(lengths_are_read_as_they_are_written)
{
    static const struct {
        uint64_t length;
        uint64_t bytes;
    } known[] = {
        { 0, 1 },
        { 63, 1 },
        { 64, 2 },
        { 16383, 2 },
        { 16384, 5 },
        { UINT32_MAX, 5 },
        { UINT32_MAX + UINT64_C(1), 9 },
        { UINT64_MAX, 9 },
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        uint8_t bytes[16];
        struct rdb_out out = { .to = bytes };
        struct rdb_in in;

        rdb_put_length(&out, known[i].length);
        assert_true(out.len == known[i].bytes);
        in = in_of(bytes, (size_t)out.len);
        assert_true(rdb_length(&in) == known[i].length);
        assert_true(in.left == 0 && !in.failed);
        in = in_of(bytes, (size_t)out.len - 1);
        assert_true(rdb_length(&in) == 0 && in.failed);
    }
}

TEST(special_lengths_are_no_lengths)
{
    static const uint8_t bytes[][2] = { { 0x82, 0 }, { 0xc0, 0 }, { 0xff, 0 } };

    for (size_t i = 0; i < 3; i++) {
        struct rdb_in in = in_of(bytes[i], 2);

        assert_true(rdb_length(&in) == 0 && in.failed && in.left == 0);
    }
}

static void
assert_string(const void *bytes, size_t len, const char *wanted)
{
    struct rdb_in in = in_of(bytes, len);
    struct rdb_string string;
    char text[64] = { 0 };

    rdb_string(&in, &string);
    assert_false(in.failed);
    assert_true(in.left == 0 && string.len == strlen(wanted));
    assert_true(rdb_expand(&string, text, strlen(wanted)));
    assert_string_equal(wanted, text);
    assert_false(rdb_expand(&string, text, strlen(wanted) + 1));
    for (size_t cut = 0; cut < len; cut++) {
        in = in_of(bytes, cut);
        rdb_string(&in, &string);
        assert_true(in.failed && string.len == 0);
    }
}

TEST(strings_have_three_forms)
{
    assert_string("\x03"
                  "abc",
                  4, "abc");
    assert_string("\x40\x03"
                  "abc",
                  5, "abc");
    assert_string("\xc0\xff", 2, "-1");
    assert_string("\xc1\x39\x30", 3, "12345");
    assert_string("\xc2\x00\x00\x00\x80", 5, "-2147483648");
    /* "abcabcabcabcX": 3 bytes, 9 from 3 back, 1 byte. */
    assert_string("\xc3\x09\x0d"
                  "\x02"
                  "abc"
                  "\xe0\x00\x02"
                  "\x00X",
                  12, "abcabcabcabcX");
}

TEST(damaged_lzf_data_is_refused)
{
    static const struct {
        const char *data;
        size_t len;
    } damaged[] = {
        { "\x05"
          "abc",
          4 }, /* fewer bytes than it says */
        { "\x00"
          "a\x20\x05",
          4 }, /* from before the beginning */
        { "\x00"
          "a\xe0",
          3 }, /* ends within a copy */

        { "\x00"
          "a",
          2 }, /* too short as a whole */
    };

    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        struct rdb_string string = { .len = 20,
                                     .data = (const void *)damaged[i].data,
                                     .data_len = damaged[i].len,
                                     .is_lzf = true };
        uint8_t text[20];

        assert_false(rdb_expand(&string, text, sizeof(text)));
    }
}

TEST(fields_have_the_opcode_that_is_expected)
{
    uint8_t bytes[64];
    struct rdb_out out = { .to = bytes };
    struct rdb_in in;
    struct rdb_string string;

    rdb_put_uint(&out, 300);
    rdb_put_double(&out, 0.25);
    rdb_put_string_head(&out, 2);
    rdb_put(&out, "ab", 2);
    rdb_put_length(&out, RDB_EOF);
    in = in_of(bytes, (size_t)out.len);
    assert_true(rdb_field_uint(&in) == 300);
    assert_true(rdb_field_double(&in) == 0.25);
    rdb_field_string(&in, &string);
    assert_true(string.len == 2 && memcmp(string.data, "ab", 2) == 0);
    assert_true(rdb_length(&in) == RDB_EOF && in.left == 0 && !in.failed);
    in = in_of(bytes, (size_t)out.len);
    assert_true(rdb_field_double(&in) == 0 && in.failed);
    assert_true(rdb_field_uint(&in) == 0 && rdb_byte(&in) == 0);
}

TEST(counting_gives_the_length_of_writing)
{
    struct rdb_out out = { .to = NULL };

    rdb_put_id(&out, 1);
    rdb_put_uint(&out, 64);
    rdb_put(&out, NULL, 0);
    assert_true(out.len == 9 + 3);
}
