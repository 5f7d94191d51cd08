/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The syntax line that is made from a row's arguments.
 */
#include "command/help.h"

#include "../test.h"
#include "command/table_args.h"

static void
assert_syntax(const struct command_arg *args, const char *want)
{
    struct buf text = { 0 };

    help_append_syntax(&text, args);
    buf_append(&text, "", 1);
    assert_false(text.failed);
    assert_string_equal(text.data, want);
    buf_free(&text);
}

TEST(help_syntax_shows_values_tokens_and_what_is_optional)
{
    assert_syntax(NULL, "");
    assert_syntax(ARGS(KEY(), INT("seconds")), "<key> <seconds>");
    assert_syntax(ARGS(KEY(), INT("count", .token = "SAMPLES", OPTIONAL)),
                  "<key> [SAMPLES <count>]");
    assert_syntax(ARGS(TOKEN("nx", "NX", OPTIONAL)), "[NX]");
}

TEST(help_syntax_repeats_what_may_come_several_times)
{
    assert_syntax(ARGS(KEY(MULTIPLE)), "<key> [<key> ...]");
    assert_syntax(ARGS(STR("word", OPTIONAL_MULTIPLE)),
                  "[<word> [<word> ...]]");
    assert_syntax(ARGS(STR("item", .token = "ITEMS", MULTIPLE)),
                  "ITEMS <item> [<item> ...]");
    assert_syntax(ARGS(STR("p", .token = "PREFIX",
                           .flags = ARG_MULTIPLE | ARG_MULTIPLE_TOKEN)),
                  "PREFIX <p> [PREFIX <p> ...]");
}

TEST(help_syntax_nests_choices_and_blocks)
{
    assert_syntax(
        ARGS(ONEOF("x", ARGS(TOKEN("on", "ON"), TOKEN("off", "OFF")))),
        "(ON|OFF)");
    assert_syntax(
        ARGS(ONEOF("x", ARGS(TOKEN("nx", "NX"), TOKEN("xx", "XX")), OPTIONAL)),
        "[NX|XX]");
    assert_syntax(ARGS(ONEOF("x", ARGS(TOKEN("a", "A"), TOKEN("b", "B")),
                             .token = "TYPE", OPTIONAL)),
                  "[TYPE (A|B)]");
    assert_syntax(
        ARGS(BLOCK("pair", ARGS(STR("name"), STR("value")), MULTIPLE)),
        "<name> <value> [<name> <value> ...]");
}
