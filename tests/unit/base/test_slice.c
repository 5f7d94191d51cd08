/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparison, and strict numbers: what is taken and what is refused. Slices
 * are cut out of longer text, so that reading behind the end would show.
 */
#include "base/slice.h"

#include "../test.h"

#include <inttypes.h>
#include <stdio.h>

TEST(equal_compares_length_and_bytes)
{
    assert_true(slice_equal(slice_lit("abc"), slice_of("abc")));
    assert_false(slice_equal(slice_lit("abc"), slice_lit("abd")));
    assert_false(slice_equal(slice_lit("abc"), slice_lit("abcd")));
    assert_false(slice_equal(slice_lit("a\0b"), slice_lit("a\0c")));
    assert_true(
        slice_equal((struct slice){ NULL, 0 }, (struct slice){ "x", 0 }));
}

/* Short slices are compared as overlapping words: each length and each place
 * of a difference, with other bytes behind the end. */
TEST(equal_sees_a_difference_at_every_place_of_every_length)
{
    for (size_t len = 0; len <= 40; len++) {
        char a[41];
        char b[41];

        memset(a, 'x', sizeof(a));
        memset(b, 'x', sizeof(b));
        b[len] = 'y';
        assert_true(
            slice_equal((struct slice){ a, len }, (struct slice){ b, len }));
        for (size_t at = 0; at < len; at++) {
            b[at] ^= (char)(1 << (at % 8));
            assert_false(slice_equal((struct slice){ a, len },
                                     (struct slice){ b, len }));
            b[at] = 'x';
        }
    }
}

TEST(a_word_matches_in_any_case_and_only_whole)
{
    assert_true(slice_is_word(slice_lit("PiNg"), "ping"));
    assert_true(slice_is_word(slice_lit("ping"), "PING"));
    assert_true(slice_is_word(slice_lit(""), ""));
    assert_true(slice_is_word((struct slice){ "ping-pong", 4 }, "ping"));
    assert_false(slice_is_word(slice_lit("pin"), "ping"));
    assert_false(slice_is_word(slice_lit("pingo"), "ping"));
    assert_false(slice_is_word(slice_lit("ping\0"), "ping"));
    assert_false(slice_is_word(slice_lit(""), "ping"));
    assert_false(slice_is_word(slice_lit("ping"), ""));
    /* Bytes that differ in the bit of the case but are no letters. */
    assert_false(slice_is_word(slice_lit("@"), "`"));
    assert_false(slice_is_word(slice_lit("["), "{"));
}

struct number_case {
    struct slice text;
    bool ok;
    int64_t value;
};

TEST(signed_numbers_are_strict)
{
    const struct number_case cases[] = {
        { slice_lit("0"), true, 0 },
        { slice_lit("7"), true, 7 },
        { slice_lit("-1"), true, -1 },
        { slice_lit("9223372036854775807"), true, INT64_MAX },
        { slice_lit("-9223372036854775808"), true, INT64_MIN },
        { slice_lit("9223372036854775808"), false, 0 },
        { slice_lit("-9223372036854775809"), false, 0 },
        { slice_lit("18446744073709551615"), false, 0 },
        { slice_lit("18446744073709551616"), false, 0 },
        { slice_lit("99999999999999999999999999"), false, 0 },
        { { "123456", 3 }, true, 123 },
        { { "12", 0 }, false, 0 },
        { { NULL, 0 }, false, 0 },
        { slice_lit("-"), false, 0 },
        { slice_lit("-0"), false, 0 },
        { slice_lit("00"), false, 0 },
        { slice_lit("01"), false, 0 },
        { slice_lit("-01"), false, 0 },
        { slice_lit("+1"), false, 0 },
        { slice_lit(" 1"), false, 0 },
        { slice_lit("1 "), false, 0 },
        { slice_lit("1\0"), false, 0 },
        { slice_lit("1.0"), false, 0 },
        { slice_lit("0x1"), false, 0 },
        { slice_lit("--1"), false, 0 },
        { slice_lit("/"), false, 0 },
        { slice_lit(":"), false, 0 },
        { slice_lit("\xb1"), false, 0 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t value = 4711;

        assert_int_equal(cases[i].ok, slice_to_i64(cases[i].text, &value));
        assert_int_equal(cases[i].ok ? cases[i].value : 4711, value);
    }
}

TEST(unsigned_numbers_are_strict)
{
    uint64_t value = 4711;

    assert_true(slice_to_u64(slice_lit("18446744073709551615"), &value));
    assert_true(value == UINT64_MAX);
    value = 4711;
    assert_false(slice_to_u64(slice_lit("18446744073709551616"), &value));
    assert_false(slice_to_u64(slice_lit("18446744073709551620"), &value));
    assert_false(slice_to_u64(slice_lit("-1"), &value));
    assert_false(slice_to_u64(slice_lit(""), &value));
    assert_int_equal(4711, value);
    assert_true(slice_to_u64(slice_lit("0"), &value));
    assert_int_equal(0, value);
}

TEST(a_message_shows_the_beginning_of_what_is_long)
{
    char text[SLICE_SHOWN_MAX + 1] = { 0 };

    assert_int_equal(0, slice_shown((struct slice){ NULL, 0 }));
    assert_int_equal(3, slice_shown(slice_lit("abc")));
    assert_int_equal(SLICE_SHOWN_MAX,
                     slice_shown((struct slice){ text, sizeof(text) }));
    assert_int_equal(SLICE_SHOWN_MAX,
                     slice_shown((struct slice){ text, SIZE_MAX }));
}

TEST(printed_numbers_read_back)
{
    uint64_t x = test_seed() | 1;

    for (int i = 0; i < 20000; i++) {
        char text[32];
        int64_t value = 0;
        int64_t number;
        int len;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        number = (int64_t)x >> (i % 64);
        len = snprintf(text, sizeof(text), "%" PRId64, number);
        assert_true(slice_to_i64((struct slice){ text, (size_t)len }, &value));
        assert_int_equal(number, value);
    }
}

TEST(words_are_cut_at_blanks)
{
    struct slice text = slice_lit("  a \t bc ");
    struct slice word;

    assert_true(slice_next_word(&text, &word));
    assert_true(slice_equal(word, slice_lit("a")));
    assert_true(slice_next_word(&text, &word));
    assert_true(slice_equal(word, slice_lit("bc")));
    assert_false(slice_next_word(&text, &word));
    assert_false(slice_next_word(&text, &word));
}

TEST(white_space_and_nul_are_found)
{
    assert_false(slice_has_space(slice_lit("")));
    assert_false(slice_has_space(slice_lit("a\x01\x7f\xff")));
    assert_true(slice_has_space(slice_lit("a b")));
    assert_true(slice_has_space(slice_lit("\t")));
    assert_true(slice_has_space(slice_lit("a\r\n")));
    assert_true(slice_has_space(slice_lit("\v\f")));
    assert_true(slice_has_space((struct slice){ "a\0", 2 }));
}

TEST(a_text_is_taken_piece_by_piece)
{
    struct slice text = slice_lit("role replica host 7\nrest");
    struct slice bytes = slice_lit("untouched");

    assert_false(slice_take(&text, "roles"));
    assert_true(slice_take(&text, "role replica "));
    assert_true(slice_take_until(&text, ' ', &bytes));
    assert_true(slice_equal(bytes, slice_lit("host")));
    assert_true(slice_take_until(&text, '\n', &bytes));
    assert_true(slice_equal(bytes, slice_lit("7")));
    assert_false(slice_take_until(&text, '\n', &bytes));
    assert_true(slice_equal(bytes, slice_lit("7")));
    assert_true(slice_take(&text, "rest"));
    assert_false(slice_take(&text, "rest"));
    assert_false(slice_take_until(&text, ' ', &bytes));
    assert_true(slice_take(&text, ""));
    text = (struct slice){ NULL, 0 };
    assert_false(slice_take_until(&text, ' ', &bytes));
}

TEST(lines_are_cut_without_their_ends)
{
    struct slice text = slice_lit("a\r\n\nb c\nlast");
    const struct slice wanted[] = { slice_lit("a"), slice_lit(""),
                                    slice_lit("b c"), slice_lit("last") };
    struct slice line;

    for (int i = 0; i < 4; i++) {
        assert_true(slice_next_line(&text, &line));
        assert_true(slice_equal(line, wanted[i]));
    }
    assert_false(slice_next_line(&text, &line));
    text = slice_lit("one\n"); /* no empty line behind it */
    assert_true(slice_next_line(&text, &line));
    assert_false(slice_next_line(&text, &line));
}

TEST(zeros_are_told_from_all_other_bytes)
{
    char bytes[70] = { 0 };

    for (size_t len = 1; len < sizeof(bytes); len++) {
        bytes[len] = 1;
        assert_true(slice_is_zero((struct slice){ bytes, len }));
        bytes[len] = 0;
        for (size_t at = 0; at < len; at++) {
            bytes[at] = 1;
            assert_false(slice_is_zero((struct slice){ bytes, len }));
            bytes[at] = 0;
        }
    }
}
