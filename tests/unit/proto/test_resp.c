/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/resp.h"

#include "../test.h"

static void
assert_text(struct slice text, const char *expected)
{
    assert_true(slice_equal(text, slice_of(expected)));
}

TEST(texts_are_those_of_simple_strings_errors_and_bulks)
{
    assert_text(resp_text(slice_lit("+OK\r\n")), "OK");
    assert_text(resp_text(slice_lit("-ERR no\r\n")), "ERR no");
    assert_text(resp_text(slice_lit("$3\r\na\r\n\r\n")), "a\r\n");
    assert_text(resp_text(slice_lit("$0\r\n\r\n")), "");
    assert_text(resp_text(slice_lit("$-1\r\n")), "");
    assert_text(resp_text(slice_lit(":1\r\n")), "");
    assert_true(resp_is_error(slice_lit("-ERR no\r\n")));
    assert_false(resp_is_error(slice_lit("+OK\r\n")));
}

TEST(integers_are_read)
{
    int64_t value = 7;

    assert_false(resp_integer(slice_lit("+1\r\n"), &value));
    assert_false(resp_integer(slice_lit(":x\r\n"), &value));
    assert_int_equal(value, 7);
    assert_true(resp_integer(slice_lit(":-12\r\n"), &value));
    assert_int_equal(value, -12);
}

TEST(elements_of_an_array_are_cut_off_one_by_one)
{
    struct slice rest, element;

    assert_true(
        resp_array(slice_lit("*3\r\n:1\r\n*1\r\n+a\r\n$1\r\nb\r\n"), &rest));
    assert_true(resp_element(&rest, &element));
    assert_text(element, ":1\r\n");
    assert_true(resp_element(&rest, &element));
    assert_text(element, "*1\r\n+a\r\n");
    assert_true(resp_element(&rest, &element));
    assert_text(resp_text(element), "b");
    assert_false(resp_element(&rest, &element));
    assert_false(resp_array(slice_lit("+OK\r\n"), &rest));
}

TEST(the_first_error_is_found_however_deep)
{
    assert_text(resp_find_error(slice_lit("*2\r\n:1\r\n*1\r\n-ERR no\r\n")),
                "ERR no");
    assert_text(resp_find_error(slice_lit("*1\r\n:1\r\n")), "");
}

TEST(a_number_behind_a_name_is_found)
{
    struct slice info = slice_lit("$12\r\na:1\r\nbc:23\r\n\r\n");
    uint64_t value = 0;

    assert_true(resp_field(info, "bc:", &value));
    assert_int_equal(value, 23);
    assert_false(resp_field(info, "d:", &value));
}
