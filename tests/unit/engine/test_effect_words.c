/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a client gets of the commands of a log.
 */
#include "engine/effect_words.h"

#include "engine/logged.h"
#include "group_help.h"

/* Writes the commands of TEXT as a client may send them, with semicolons. */
static void
assert_plain(const char *text, const char *wanted)
{
    struct logged_reader reader = { 0 };
    struct logged logged;
    struct buf group = { 0 };
    struct buf got = { 0 };

    command_table_init(command_rows);
    encode(&group, text);
    logged_begin(&reader, buf_slice(&group));
    while (logged_next(&reader, &logged)) {
        size_t argc = effect_plain(logged.argv, &logged);

        for (size_t j = 0; j < argc; j++) {
            buf_printf(&got, "%s%.*s", j > 0 ? " " : "",
                       (int)logged.argv[j].len, logged.argv[j].data);
        }
        buf_append(&got, ";", 1);
    }
    assert_int_equal(0, reader.error);
    buf_append(&got, "", 1);
    assert_string_equal(got.data, wanted);
    buf_free(&group);
    buf_free(&got);
    logged_fini(&reader);
}

TEST(an_insert_loses_the_words_of_the_log)
{
    assert_plain("BF.INSERT k CAPACITY 5 HASH keyed FINGERPRINT 0f STRIPES 1 "
                 "LINES 2 INCARNATION 9 PXAT 7 ITEMS at 3",
                 "BF.INSERT k CAPACITY 5 HASH keyed PXAT 7 ITEMS at 3;");
    assert_plain("BF.INSERT k DELETABLE 4 LINES 2 INCARNATION 9 PLACED + a 3 b",
                 "BF.INSERT k DELETABLE 4 ITEMS a b;");
    assert_plain("BF.INSERT k AGEING 5 GENERATIONS 2 AT 9 INCARNATION 1",
                 "BF.INSERT k AGEING 5 GENERATIONS 2;");
    assert_plain("BF.INSERT k DELETABLE NONSCALING LINES 1",
                 "BF.INSERT k DELETABLE NONSCALING;");
    assert_plain("BF.MDEL k PLACED 1:4 a 2:3 b", "BF.MDEL k a b;");
}

TEST(what_names_a_life_loses_its_name)
{
    assert_plain("RESTORE k 0 x ABSTTL REPLACE INCARNATION 4;"
                 "COPY a b DB 3 REPLACE INCARNATION 4;"
                 "BF.MERGE d s INCARNATION 0;BF.LOADCHUNK k 1 x INCARNATION 4;"
                 "BF.LOADCHUNK k 9 x;BF.LOAD k x INCARNATION 4",
                 "RESTORE k 0 x ABSTTL REPLACE;COPY a b DB 3 REPLACE;"
                 "BF.MERGE d s;BF.LOADCHUNK k 1 x;BF.LOADCHUNK k 9 x;"
                 "BF.LOAD k x;");
}

TEST(names_and_items_that_look_like_words_stay)
{
    assert_plain("BF.MADD k a incarnation 4;DEL a incarnation b;"
                 "RENAME incarnation 4;SELECT 3",
                 "BF.MADD k a incarnation 4;DEL a incarnation b;"
                 "RENAME incarnation 4;SELECT 3;");
}

TEST(an_insert_is_told_by_its_words)
{
    const struct slice argv[] = { slice_lit("BF.INSERT"), slice_lit("k"),
                                  slice_lit("DELETABLE"), slice_lit("PLACED"),
                                  slice_lit("+"),         slice_lit("at") };
    struct insert_words found = insert_words_of(argv, 6);
    unsigned flags = 1;

    assert_int_equal(found.list, 3);
    assert_true(found.placed);
    assert_int_equal(found.flags & (INSERT_MAKES | INSERT_TIMED), 0);
    assert_int_equal(insert_words_of(argv, 3).list, 3);
    assert_int_equal(insert_word(slice_lit("LAYOUT"), &flags), INSERT_LAYOUT);
    assert_int_equal(flags, INSERT_VALUE | INSERT_LOG | INSERT_SHAPE);
    assert_int_equal(insert_word(slice_lit("nonscaling"), &flags),
                     INSERT_NONSCALING);
    assert_int_equal(flags, 0);
    assert_int_equal(insert_word(slice_lit("lay"), &flags), INSERT_UNKNOWN);
    assert_int_equal(flags, 0);
}
