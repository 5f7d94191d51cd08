/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What stands in a man page after a text was printed.
 */
#include "conf/mdoc.h"

#include "../test.h"

#include <stdio.h>
#include <string.h>

static void
expect(void (*print)(FILE *to, const char *text), const char *text,
       const char *wanted)
{
    char got[512] = "";
    FILE *to = fmemopen(got, sizeof(got), "w");

    assert_non_null(to);
    print(to, text);
    assert_int_equal(0, fclose(to));
    assert_string_equal(got, wanted);
}

TEST(words_are_escaped)
{
    expect(mdoc_print_words, "a-b \"c\" \\d", "a\\-b \\(dqc\\(dq \\ed");
    expect(mdoc_print_words, ".5", "\\&.5");
    expect(mdoc_print_words, "", "");
}

TEST(each_sentence_ends_its_line)
{
    expect(mdoc_print_text, "One. Two is-it.", "One.\nTwo is\\-it.\n");
    expect(mdoc_print_text, "1.5 of it", "1.5 of it");
}

TEST(long_sentences_are_broken_at_blanks)
{
    expect(mdoc_print_text,
           "aaaaaaaaa bbbbbbbbb ccccccccc ddddddddd eeeeeeeee fffffffff "
           "ggggggggg hhhhhhhhh.",
           "aaaaaaaaa bbbbbbbbb ccccccccc ddddddddd eeeeeeeee fffffffff "
           "ggggggggg\nhhhhhhhhh.\n");
}
