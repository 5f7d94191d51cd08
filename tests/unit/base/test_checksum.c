/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A line that holds, and every byte that may be wrong.
 */
#include "base/checksum.h"

#include "../test.h"

TEST(the_line_is_that_of_files_in_use)
{
    char text[64] = "bloomery-role 1\n";
    size_t len = checksum_append(text, strlen(text));

    assert_int_equal(16 + CHECKSUM_LINE_BYTES, len);
    assert_memory_equal(text, "bloomery-role 1\nchecksum ", 25);
    assert_int_equal('\n', text[len - 1]);
    assert_true(checksum_holds((struct slice){ text, len }));
}

TEST(a_changed_byte_and_a_missing_one_are_seen)
{
    char text[64] = "a\nb\n";
    size_t len = checksum_append(text, 4);

    for (size_t i = 0; i < len; i++) {
        text[i] ^= 1;
        assert_false(checksum_holds((struct slice){ text, len }));
        text[i] ^= 1;
        assert_false(checksum_holds((struct slice){ text, i }));
    }
    assert_true(checksum_holds((struct slice){ text, len }));
}

TEST(the_line_is_cut_off_if_it_holds)
{
    char bytes[64] = "text\n";
    struct slice text = { bytes, 5 };

    assert_false(checksum_take(&text));
    assert_int_equal(text.len, 5);
    text.len = checksum_append(bytes, 5);
    assert_true(checksum_take(&text));
    assert_int_equal(text.len, 5);
}
