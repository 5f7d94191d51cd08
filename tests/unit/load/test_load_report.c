/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The report: a line for each field, and nothing that a terminal obeys.
 */
#include "load/load_report.h"

#include "../capture.h"

static void
report(struct load *load)
{
    load_report_begin(load, slice_lit("a\x1b[2Jb"));
    load_report_number("items", UINT64_MAX);
    load_report_text("a field that is longer", "x\ry");
    load_report_format("share", "%d %%", 50);
}

TEST(fields_have_a_line_each_without_control_bytes)
{
    struct load load = { .tool = { .name = "test" } };

    EXPECT_OUTPUT(STDOUT_FILENO, report(&load),
                  "a?[2Jb:\n"
                  "    items              18446744073709551615\n"
                  "    a field that is longer x?y\n"
                  "    share              50 %\n");
}

static void
show_lag(struct load *load, uint64_t applied, const uint64_t *behind)
{
    load->tool.drawn_ns = 0;
    load_report_lag(load, applied, behind);
}

TEST(the_progress_of_a_follower_fits_60_columns)
{
    struct load load = { .tool = { .name = "bloomery-load", .lines = true } };
    static const uint64_t behind = UINT64_MAX;

    EXPECT_OUTPUT(STDERR_FILENO, show_lag(&load, UINT64_C(1) << 63, &behind),
                  "bloomery-load: 9.22E commands applied, lag 18.4E bytes\n");
    EXPECT_OUTPUT(STDERR_FILENO, show_lag(&load, 99949, NULL),
                  "bloomery-load: 99.9k commands applied, lag unknown\n");
    load.tool.bar = true;
    EXPECT_OUTPUT(STDERR_FILENO, show_lag(&load, 7, &behind),
                  "\r\033[K7 commands applied, lag 18.4E bytes");
}

TEST(texts_are_cut_at_a_kilobyte)
{
    static char text[3000];
    struct capture output;

    memset(text, 'x', sizeof(text) - 1);
    capture_begin(&output, STDOUT_FILENO);
    load_report_format("f", "%s", text);
    (void)capture_end(&output);
    assert_int_equal(strlen("    ") + 18 + strlen(" ") + 1023 + strlen("\n"),
                     output.len);
}
