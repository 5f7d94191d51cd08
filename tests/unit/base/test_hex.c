/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Digits, and what is none.
 */
#include "base/hex.h"

#include "../test.h"

TEST(a_number_has_all_its_digits_and_reads_back)
{
    static const struct {
        uint64_t value;
        const char *digits;
    } cases[] = {
        { 0, "0000000000000000" },
        { 0x0123456789abcdefU, "0123456789abcdef" },
        { UINT64_MAX, "ffffffffffffffff" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char digits[HEX_U64_CHARS];
        uint64_t value = 1;

        hex_put_u64(digits, cases[i].value);
        assert_memory_equal(digits, cases[i].digits, sizeof(digits));
        assert_true(hex_get_u64(digits, &value));
        assert_true(value == cases[i].value);
    }
}

TEST(other_texts_are_refused)
{
    static const char *const texts[] = {
        "",
        "0123456789abcde",
        "0123456789abcdef0",
        "0123456789ABCDEF",
        "0123456789abcdeg",
        " 123456789abcdef",
        "0x23456789abcdef",
    };
    uint64_t value = 7;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_false(hex_parse_u64(slice_of(texts[i]), &value));
    }
    assert_true(value == 7);
    assert_true(hex_parse_u64(slice_lit("0000000000000008"), &value));
    assert_true(value == 8);
}

TEST(bytes_are_two_digits_each)
{
    char text[9];

    hex_put_bytes(text, "\x00\x1f\xa0\xff", 4);
    assert_string_equal("001fa0ff", text);
    hex_put_bytes(text, "", 0);
    assert_string_equal("", text);
}

TEST(bytes_read_back_and_other_texts_are_refused)
{
    unsigned char bytes[4];

    assert_true(hex_get_bytes(slice_lit("001fa0ff"), bytes, 4));
    assert_memory_equal("\x00\x1f\xa0\xff", bytes, 4);
    assert_true(hex_get_bytes(slice_lit(""), bytes, 0));
    assert_false(hex_get_bytes(slice_lit("001fa0f"), bytes, 4));
    assert_false(hex_get_bytes(slice_lit("001fa0ff0"), bytes, 4));
    assert_false(hex_get_bytes(slice_lit("001fA0ff"), bytes, 4));
    assert_false(hex_get_bytes(slice_lit("001fg0ff"), bytes, 4));
}

TEST(digits_are_counted_and_lower_case)
{
    assert_true(hex_is_digits(slice_lit("09af"), 4));
    assert_false(hex_is_digits(slice_lit("09af"), 3));
    assert_false(hex_is_digits(slice_lit("09af"), 5));
    assert_false(hex_is_digits(slice_lit("09aF"), 4));
    assert_false(hex_is_digits(slice_lit("09ag"), 4));
    assert_true(hex_is_digits(slice_lit(""), 0));
}

TEST(an_escape_is_two_digits_of_either_case)
{
    assert_int_equal(0, hex_escaped_byte('0', '0'));
    assert_int_equal(0xaf, hex_escaped_byte('a', 'F'));
    assert_int_equal(0xfa, hex_escaped_byte('F', 'a'));
    assert_int_equal(-1, hex_escaped_byte('g', '0'));
    assert_int_equal(-1, hex_escaped_byte('0', 'G'));
    assert_int_equal(-1, hex_escaped_byte('`', '@'));
}
