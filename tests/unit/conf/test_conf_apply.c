/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Options as words. tests/scenario/test_foreign.py has whole command lines.
 */
#include "conf/conf_apply.h"

#include "../test.h"

enum { WORDS_MAX = 8 };

static void
expect_words(const char *line, const char *const *words, size_t count)
{
    struct slice got[WORDS_MAX];
    struct buf store = { 0 };
    size_t len;

    assert_true(conf_apply_split(slice_of(line), &store, got, WORDS_MAX, &len));
    assert_int_equal(count, len);
    for (size_t i = 0; i < count; i++) {
        assert_true(slice_equal(got[i], slice_of(words[i])));
    }
    buf_free(&store);
}

TEST(a_line_is_split_with_its_quotes_and_escapes)
{
    static const char *const plain[] = { "save", "60", "1" };
    static const char *const quoted[] = { "a b", "", "c\n!", "d''e'" };

    expect_words(" save\t60 1\r\n", plain, 3);
    expect_words("\"a b\" '' \"c\\n\\x21\" 'd\\'\\'e\\''", quoted, 4);
    expect_words("", NULL, 0);
    expect_words("  ", NULL, 0);
}

TEST(a_quote_that_stays_open_and_too_many_words_are_refused)
{
    struct slice got[WORDS_MAX];
    struct buf store = { 0 };
    size_t len;

    assert_false(
        conf_apply_split(slice_lit("a \"b"), &store, got, WORDS_MAX, &len));
    assert_false(conf_apply_split(slice_lit("1 2 3 4 5 6 7 8 9"), &store, got,
                                  WORDS_MAX, &len));
    buf_free(&store);
}

TEST(words_set_ours_and_know_those_of_others)
{
    struct slice words[] = { slice_lit("900"), slice_lit("1"), slice_lit("300"),
                             slice_lit("10") };
    struct slice three[] = { slice_lit("redisbloom.so"),
                             slice_lit("INITIAL_SIZE"), slice_lit("7") };
    struct conf_notes notes = { { 0 } };
    struct conf_error error;
    struct conf conf;
    struct conf_source source = { .conf = &conf,
                                  .notes = &notes,
                                  .where = "f:1" };

    conf_init(&conf);
    assert_true(conf_apply_words(&source, slice_lit("save"), words, 4, &error));
    assert_int_equal(2, conf.save.count);
    assert_false(
        conf_apply_words(&source, slice_lit("port"), words, 2, &error));
    assert_string_equal("takes one value", error.text);
    assert_false(
        conf_apply_words(&source, slice_lit("port"), words, 0, &error));
    assert_false(
        conf_apply_words(&source, slice_lit("nope"), words, 1, &error));
    assert_string_equal("unknown option nope", error.text);
    assert_true(
        conf_apply_words(&source, slice_lit("loadmodule"), three, 3, &error));
    assert_int_equal(7, conf.bf_capacity);
    assert_int_equal(CONF_DIALECT_REDIS, conf.dialect);
    assert_non_null(strstr(notes.text, "f:1: loadmodule redisbloom.so"));
    three[0] = slice_lit("KEYS");
    three[1] = slice_lit("");
    assert_true(conf_apply_words(&source, slice_lit("rename-command"), three, 2,
                                 &error));
    assert_string_equal("KEYS", conf.disabled_commands);
    assert_true(conf_apply_is_foreign(slice_lit("HZ")));
    assert_false(conf_apply_is_foreign(slice_lit("port")));
    conf_fini(&conf);
}
