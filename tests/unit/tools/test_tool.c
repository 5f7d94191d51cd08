/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Progress: what a line has, and that it fits 60 columns. The scenarios test
 * the rest.
 */
#include "tools/tool.h"

#include "../test.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COLUMNS = 60 };

/* Adds to a bar that began some seconds ago, and returns the line that it draws
 * on standard error. */
static void
draw(struct tool *tool, uint64_t seconds, uint64_t count, char ret_line[256])
{
    FILE *file = tmpfile();
    int old = dup(STDERR_FILENO);
    size_t len;

    assert_non_null(file);
    assert_true(old >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    tool->begun_ns = clock_mono_ns() - seconds * UINT64_C(1000000000);
    tool->drawn_ns = 0;
    tool_bar_add(tool, count);
    (void)fflush(stderr);
    assert_true(dup2(old, STDERR_FILENO) >= 0);
    (void)close(old);
    rewind(file);
    len = fread(ret_line, 1, 255, file);
    ret_line[len] = '\0';
    (void)fclose(file);
}

static size_t
columns(const char *line)
{
    const char *erase = strstr(line, "\033[K");

    return erase != NULL ? strlen(erase) - strlen("\033[K")
                         : strcspn(line, "\n");
}

TEST(numbers_have_at_most_five_letters)
{
    static const struct {
        uint64_t n;
        const char *text;
    } cases[] = {
        { 0, "0" },           { 9999, "9999" },
        { 10000, "10.0k" },   { 99949, "99.9k" },
        { 99950, "100k" },    { 999499, "999k" },
        { 999500, "1.00M" },  { 9994999, "9.99M" },
        { 9995000, "10.0M" }, { UINT64_MAX, "18.4E" },
    };
    char text[TOOL_SHORT];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(tool_short(cases[i].n, text), cases[i].text);
    }
}

TEST(a_line_has_the_share_the_rate_and_the_time_left)
{
    struct tool tool = { .name = "bloomery-check", .bar = true };
    char line[256];

    tool.unit = TOOL_UNIT_ITEMS;
    tool.total = 40000;
    draw(&tool, 10, 30000, line);
    assert_string_equal(line, "\r\033[K[######..]  75 %  30.0k of 40.0k items, "
                              "3000/s, 0:03 left");
    tool.bar = false;
    tool.lines = true;
    draw(&tool, 10, 0, line);
    assert_string_equal(line, "bloomery-check: 30.0k of 40.0k items, 3000/s, "
                              "0:03 left\n");
}

TEST(every_line_fits)
{
    uint64_t random = test_seed();
    char line[256];

    for (int round = 0; round < 400; round++) {
        struct tool tool = { .name = "bloomery-check", .bar = round % 2 == 0 };

        tool.lines = true;
        tool.unit = round % 4 < 2 ? TOOL_UNIT_ITEMS : TOOL_UNIT_MIB;
        tool.total = test_random(&random) >> test_random_below(&random, 64);
        draw(&tool, test_random_below(&random, 10000),
             test_random(&random) >> test_random_below(&random, 64), line);
        assert_in_range(columns(line), 1, COLUMNS);
    }
}

/* The longest texts: each figure as long as it can be, after any time. */
TEST(the_longest_line_of_each_program_fits)
{
    static const char *const names[] = { "bloomery-check", "bloomery-load" };
    static const uint64_t figures[] = {
        0, 1, 9999, 99949, UINT64_C(1) << 63, UINT64_MAX
    };
    static const uint64_t times[] = { 0, 1, 59999, 100000000 };
    enum { FIGURES = sizeof(figures) / sizeof(figures[0]), TIMES = 4 };
    size_t longest = 0;
    char line[256];

    for (unsigned i = 0; i < FIGURES * FIGURES * TIMES * 8; i++) {
        struct tool tool = { .name = names[i % 2], .bar = i / 2 % 2 == 0 };

        tool.lines = true;
        tool.unit = i / 4 % 2 == 0 ? TOOL_UNIT_ITEMS : TOOL_UNIT_MIB;
        tool.total = figures[i / 8 % FIGURES];
        draw(&tool, times[i / 8 / FIGURES % TIMES],
             figures[i / 8 / FIGURES / TIMES], line);
        assert_in_range(columns(line), 1, COLUMNS);
        longest = columns(line) > longest ? columns(line) : longest;
    }
    assert_in_range(longest, COLUMNS - 5, COLUMNS);
}
