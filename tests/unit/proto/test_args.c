/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cursor and its stickiness.
 */
#include "../test.h"

#include "proto/args.h"

static const struct slice argv[] = {
    { "key", 3 }, { "-12", 3 }, { "EXpansion", 9 }, { "07", 2 }, { "last", 4 }
};

TEST(arguments_come_in_order)
{
    struct args args = args_of(argv, 3);

    assert_int_equal(3, args_left(&args));
    assert_true(slice_equal(args_bytes(&args), slice_lit("key")));
    assert_int_equal(-12, args_i64(&args));
    assert_int_equal(ERR_SYNTAX, args_end(&args));
    assert_false(args_word(&args, "ERROR"));
    assert_int_equal(1, args_left(&args));
    assert_true(args_word(&args, "EXPANSION"));
    assert_int_equal(0, args_left(&args));
    assert_int_equal(OK, args_end(&args));
    assert_false(args_word(&args, "EXPANSION"));
    assert_int_equal(OK, args_end(&args));
}

TEST(a_missing_argument_is_a_syntax_error)
{
    struct args args = args_of(argv, 1);

    (void)args_bytes(&args);
    assert_int_equal(OK, args_end(&args));
    assert_int_equal(0, args_bytes(&args).len);
    assert_int_equal(ERR_SYNTAX, args_end(&args));
}

TEST(the_first_mistake_stays_and_empties_the_cursor)
{
    struct args args = args_of(argv, 5);

    assert_int_equal(0, args_i64(&args));
    assert_int_equal(ERR_NOT_INTEGER, args_end(&args));
    assert_int_equal(0, args_left(&args));
    assert_int_equal(0, args_bytes(&args).len);
    assert_non_null(args_bytes(&args).data);
    assert_int_equal(0, args_i64(&args));
    assert_false(args_word(&args, "EXPANSION"));
    assert_int_equal(ERR_NOT_INTEGER, args_end(&args));
}

TEST(integers_are_strict)
{
    struct args args = args_of(argv + 3, 1);

    (void)args_i64(&args);
    assert_int_equal(ERR_NOT_INTEGER, args_end(&args));
}
