/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --plan: the reply of BF.PLAN as lines, and mistakes that name their word.
 */
#include "cli/print_plan.h"

#include "../capture.h"
#include "command/rows.h"
#include "conf/conf.h"

struct planned {
    bool good;
    char out[4096], err[1024];
};

static struct planned
plan(const char *text)
{
    struct planned planned = { .good = false };
    struct capture out, err;
    char words[256];
    char *argv[16] = { NULL };
    struct conf conf;
    int argc = 0;

    (void)snprintf(words, sizeof(words), "--plan %s", text);
    for (char *at = words, *word; (word = strsep(&at, " ")) != NULL;) {
        if (word[0] != '\0') {
            argv[argc++] = word;
        }
    }
    conf_init(&conf);
    command_table_init(command_rows);
    capture_begin(&out, STDOUT_FILENO);
    capture_begin(&err, STDERR_FILENO);
    planned.good = print_plan(&conf, argc, argv);
    (void)snprintf(planned.err, sizeof(planned.err), "%.1000s",
                   capture_end(&err));
    (void)snprintf(planned.out, sizeof(planned.out), "%.4000s",
                   capture_end(&out));
    conf_fini(&conf);
    return planned;
}

TEST(a_plan_is_a_line_for_each_value_and_layers_are_indented)
{
    struct planned planned = plan("0.01 1000000");

    assert_string_equal("", planned.err);
    assert_true(planned.good);
    assert_contains(planned.out, ":\n  - ");
    assert_contains(planned.out, "\n    ");
    assert_contains(planned.out, "1000000\n");
}

TEST(words_that_are_wrong_are_named)
{
    static const struct {
        const char *words, *text;
    } rows[] = {
        { "", "takes an error rate and a capacity, as in --plan 0.01 1000000" },
        { "0.01", "takes an error rate and a capacity" },
        { "0 100", "the first word is the error rate, above 0 and below 1, not "
                   "\"0\"" },
        { "1 100", "the first word is the error rate" },
        { "x 100", "not \"x\"" },
        { "0.01 0", "the second word is the capacity, a whole number above 0, "
                    "not \"0\"" },
        { "0.01 x", "the second word is the capacity" },
        { "0.01 100 SOMETHING", "bloomery-server: --plan: " },
        { "0.01 100 EXPANSION", "bloomery-server: --plan: " },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct planned planned = plan(rows[i].words);

        assert_false(planned.good);
        assert_string_equal("", planned.out);
        assert_contains(planned.err, rows[i].text);
    }
}

TEST(kinds_of_filters_are_planned_too)
{
    static const char *const words[] = {
        "0.01 1000 NONSCALING", "0.01 1000 DELETABLE", "0.01 1000 AGEING 60",
        "0.01 1000 HASH keyed", "0.01 1000 EXPANSION 4"
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct planned planned = plan(words[i]);

        assert_string_equal("", planned.err);
        assert_true(planned.good && planned.out[0] != '\0');
    }
}
