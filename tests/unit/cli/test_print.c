/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --print: each table whole, and nothing for a word that names none.
 */
#include "cli/print.h"

#include "../capture.h"
#include "access/table.h"
#include "base/err.h"
#include "base/metrics.h"
#include "command/rows.h"
#include "conf/conf.h"

static bool
print(const char *what, FILE *ret_to)
{
    int old = dup(STDOUT_FILENO);
    bool good;

    (void)fflush(stdout);
    assert_true(old >= 0 && dup2(fileno(ret_to), STDOUT_FILENO) >= 0);
    good = print_reference(what);
    (void)fflush(stdout);
    assert_true(dup2(old, STDOUT_FILENO) >= 0);
    (void)close(old);
    rewind(ret_to);
    return good;
}

/* Prints into a file, and counts its lines. */
static unsigned
count_lines(const char *what)
{
    FILE *file = tmpfile();
    unsigned count = 0;
    int c;

    assert_non_null(file);
    assert_true(print(what, file));
    while ((c = fgetc(file)) != EOF) {
        count += c == '\n';
    }
    (void)fclose(file);
    return count;
}

TEST(each_row_has_its_line)
{
    assert_int_equal(CMD_ID_LISTED, count_lines("commands"));
    assert_int_equal(METRIC_COUNT, count_lines("metrics"));
    assert_int_equal(ERR_COUNT - 2, count_lines("errors")); /* OK, AGAIN */
}

TEST(every_document_prints_something_and_other_words_name_none)
{
    static const char *const names[] = { "options",      "man",
                                         "commands-man", "commands-md",
                                         "files-md",     "words" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_true(count_lines(names[i]) > 10);
    }
    EXPECT_OUTPUT(STDOUT_FILENO, assert_false(print_reference("")), "");
    EXPECT_OUTPUT(STDOUT_FILENO, assert_false(print_reference("option")), "");
    EXPECT_OUTPUT(STDOUT_FILENO, assert_false(print_reference("options ")), "");
}

TEST(words_name_each_option_with_the_values_that_are_words)
{
    struct capture output;
    char line[256];

    capture_begin(&output, STDOUT_FILENO);
    assert_true(print_reference("words"));
    (void)capture_end(&output);
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];

        (void)snprintf(line, sizeof(line), "\n--%s%s", row->name,
                       row->type == CONF_BOOL   ? " yes no\n"
                       : row->type == CONF_ENUM ? " "
                                                : "\n");
        assert_contains(output.text, line);
    }
    assert_contains(output.text, "\n--print commands options metrics errors ");
    assert_contains(output.text, "\n--ping=complete\n");
}
