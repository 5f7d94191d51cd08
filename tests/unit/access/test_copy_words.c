/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The options of COPY, in any order and number.
 */
#include "access/copy_words.h"

#include "words_help.h"

TEST(options_are_read_one_after_the_other)
{
    struct slice argv[USERS_WORDS];
    size_t argc = users_words("COPY a b DB 1 replace db 2", argv);
    size_t next = COPY_WORDS_BEGIN, at = 0;

    assert_int_equal(copy_words_next(argv, argc, &next, &at), COPY_DB);
    assert_int_equal(at, 4);
    assert_int_equal(copy_words_next(argv, argc, &next, &at), COPY_REPLACE);
    assert_int_equal(copy_words_next(argv, argc, &next, &at), COPY_DB);
    assert_int_equal(at, 7);
    assert_int_equal(copy_words_next(argv, argc, &next, &at), COPY_WORDS_END);
}

TEST(a_word_that_is_no_option_stays)
{
    struct slice argv[USERS_WORDS];
    size_t argc = users_words("COPY a b DB db DB", argv);
    size_t next = COPY_WORDS_BEGIN, at = 0;

    assert_int_equal(copy_words_next(argv, argc, &next, &at), COPY_DB);
    assert_int_equal(at, 4);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(copy_words_next(argv, argc, &next, &at), COPY_OTHER);
        assert_int_equal(at, 5);
        assert_int_equal(next, 5);
    }
}
