/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Texts that fit and texts that do not.
 */
#include "conf/conf_error.h"

#include "../test.h"

TEST(a_long_error_is_cut)
{
    struct conf_error error;

    conf_error_no_memory(&error);
    assert_true(error.no_memory);
    conf_error_set(&error, "%*s", 2 * CONF_ERROR_MAX, "x");
    assert_false(error.no_memory);
    assert_int_equal(CONF_ERROR_MAX - 1, strlen(error.text));
}

TEST(notes_keep_the_lines_that_fit)
{
    static struct conf_notes notes;
    struct slice rest, line;
    size_t count = 0;

    conf_note(NULL, "nowhere");
    for (int i = 0; i < CONF_NOTES_MAX; i++) {
        conf_note(&notes, "a line");
    }
    rest = slice_of(notes.text);
    while (conf_next_note(&rest, &line)) {
        assert_true(slice_equal(line, slice_lit("a line")));
        count++;
    }
    assert_int_equal((CONF_NOTES_MAX - 1) / 7, count);
    assert_int_equal(0, rest.len);
}
