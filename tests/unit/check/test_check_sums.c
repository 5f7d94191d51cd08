/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sums of FIPS 180-2, whatever the pieces, in the form of sha256sum.
 */
#include "check/check_sums.h"

#include "../test.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

TEST(files_have_a_line_each_whatever_the_pieces)
{
    struct check_sums sums = { .text = { 0 } };

    check_sums_begin(&sums);
    check_sums_add(&sums, slice_lit("abc"));
    check_sums_end(&sums, "one piece");
    check_sums_begin(&sums);
    check_sums_end(&sums, "nothing");
    check_sums_begin(&sums);
    check_sums_add(&sums, slice_lit("a"));
    check_sums_add(&sums, slice_lit(""));
    check_sums_add(&sums, slice_lit("bc"));
    check_sums_end(&sums, "pieces");
    buf_append(&sums.text, "", 1);
    assert_string_equal(ABC "  one piece\n" EMPTY "  nothing\n" ABC
                            "  pieces\n",
                        sums.text.data);
    buf_free(&sums.text);
}
