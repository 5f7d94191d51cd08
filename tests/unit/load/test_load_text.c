/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Items of lines, NUL and CSV are the same wherever a read ends.
 */
#include "load/load_text.h"

#include "../test.h"

#include <stdio.h>
#include <unistd.h>

struct seen {
    struct buf items; /* between bars */
    unsigned left;    /* items until visit ends it; 0: never */
};

static bool
visit(void *ctx, struct slice item)
{
    struct seen *seen = ctx;

    buf_append_slice(&seen->items, item);
    buf_append(&seen->items, "|", 1);
    return seen->left == 0 || --seen->left > 0;
}

/* Reads a text of which the first bytes were read before, and the others come
 * through a pipe. Returns whether it could be read. */
static bool
read_cut(struct load *load, struct slice input, size_t cut, struct seen *seen,
         struct load_text *ret_text)
{
    int ends[2];
    bool good;

    assert_true(load_text_begin(load, ret_text));
    assert_int_equal(0, pipe(ends));
    assert_int_equal(input.len - cut,
                     write(ends[1], input.data + cut, input.len - cut));
    assert_int_equal(0, close(ends[1]));
    good = load_text_read(ret_text, "file", ends[0],
                          (struct slice){ input.data, cut }, visit, seen);
    assert_int_equal(0, close(ends[0]));
    return good;
}

static struct load
load_of(void)
{
    return (struct load){ .tool = { .name = "test" }, .value_bytes = 1000 };
}

/* Expects these items, or a failure (NULL), at each place of the cut. */
static void
expect(const struct load *options, struct slice input, const char *items,
       uint64_t left_out)
{
    for (size_t cut = 0; cut <= input.len; cut++) {
        struct load load = *options;
        struct load_text text;
        struct seen seen = { .left = 0 };
        bool good = read_cut(&load, input, cut, &seen, &text);

        buf_append(&seen.items, "", 1);
        assert_true(good == (items != NULL));
        assert_int_equal(good ? 0 : LOAD_UNREADABLE, load.tool.status);
        if (good) {
            assert_string_equal(items, seen.items.data);
            assert_int_equal(left_out, text.left_out);
        }
        buf_free(&seen.items);
    }
}

TEST(lines_end_with_lf_or_crlf)
{
    struct load load = load_of();

    expect(&load, slice_lit("a\nbc\r\n\n d \n\r\ne\rf\nlast"),
           "a|bc| d |e\rf|last|", 2);
    expect(&load, slice_lit(""), "", 0);
    expect(&load, slice_lit("\n"), "", 1);
}

TEST(strings_between_nul_may_have_any_other_byte)
{
    struct load load = load_of();

    load.nul = true;
    expect(&load, slice_lit("a\nb\0\0c\r\0d"), "a\nb|c\r|d|", 1);
}

TEST(a_column_of_csv_may_be_quoted)
{
    struct load load = load_of();

    load.csv = "2";
    expect(&load,
           slice_lit("1,one,x\r\n2,\"two, \"\"2\"\"\",\"y\nz\"\n\n"
                     "3,,z\n\"4,\",four\n5,\"five\""),
           "one|two, \"2\"|four|five|", 2);
    load.delimiter = "\\t";
    expect(&load, slice_lit("a\tb,c\td\n"), "b,c|", 0);
}

TEST(a_column_may_be_named_by_the_first_record)
{
    struct load load = load_of();

    load.csv = "the \"key\"";
    load.delimiter = ";";
    expect(&load, slice_lit("id;\"the \"\"key\"\"\"\n1;a\n2;b\n"), "a|b|", 0);
    expect(&load, slice_lit("id;key\n1;a\n"), NULL, 0);
}

TEST(a_mark_of_utf_8_is_no_part_of_the_first_cell)
{
    struct load load = load_of();

    load.csv = "id";
    expect(&load, slice_lit("\xef\xbb\xbfid,name\n1,a\n2,b\n"), "1|2|", 0);
    expect(&load, slice_lit("\xef\xbb\xbf\"id\",name\n1,a\n"), "1|", 0);
    load.csv = "1";
    expect(&load, slice_lit("\xef\xbb\xbf"), "", 0);
    expect(&load, slice_lit("\xef\xbb"), "\xef\xbb|", 0);
    expect(&load, slice_lit("a\n\xef\xbb\xbfx\n"), "a|\xef\xbb\xbfx|", 0);
}

TEST(records_that_are_damaged_stop_the_tool)
{
    struct load load = load_of();

    load.csv = "2";
    expect(&load, slice_lit("1,a\n2\n"), NULL, 0); /* too few columns */
    expect(&load, slice_lit("1,\"a\"b\n"), NULL, 0);
    expect(&load, slice_lit("1,\"a"), NULL, 0);
    expect(&load, slice_lit("1,\"a\",\"b\nx"), NULL, 0);
}

TEST(an_item_longer_than_the_limit_stops_the_tool)
{
    struct load load = load_of();
    struct buf input = { 0 };
    struct load_text text;
    struct seen seen = { .left = 0 };
    size_t long_bytes = 3 << 20;

    load.value_bytes = 1 << 20;
    buf_append(&input, "short\n", 6);
    memset(buf_reserve(&input, long_bytes), 'x', long_bytes);
    input.len += long_bytes;
    assert_true(load_text_begin(&load, &text));
    assert_false(
        load_text_read(&text, "file", -1, buf_slice(&input), visit, &seen));
    assert_int_equal(LOAD_UNREADABLE, load.tool.status);
    assert_int_equal(1, text.items);
    buf_free(&input);
    buf_free(&seen.items);
}

TEST(the_visitor_may_end_it)
{
    struct load load = load_of();
    struct load_text text;
    struct seen seen = { .left = 2 };

    assert_false(read_cut(&load, slice_lit("a\nb\nc\n"), 0, &seen, &text));
    assert_int_equal(0, load.tool.status);
    assert_int_equal(2, text.items);
    buf_free(&seen.items);
}

static void
expect_usage(const char *csv, const char *delimiter, bool nul)
{
    struct load load = load_of();
    struct load_text text;

    load.csv = csv;
    load.delimiter = delimiter;
    load.nul = nul;
    assert_false(load_text_begin(&load, &text));
    assert_int_equal(LOAD_USAGE, load.tool.status);
}

TEST(options_that_exclude_each_other_are_refused)
{
    expect_usage("1", NULL, true);
    expect_usage(NULL, ";", false);
    expect_usage("0", NULL, false);
    expect_usage("1", "", false);
    expect_usage("1", ";;", false);
    expect_usage("1", "\"", false);
    expect_usage("1", "\n", false);
}
