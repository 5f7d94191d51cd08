/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rules of a selector: what they change, what they are shown as, and which are
 * refused. Texts are Redis's.
 */
#include "access/selector.h"

#include "base/mem.h"
#include "words_help.h"

static void
expect(const char *rules, const char *shown)
{
    struct selector selector = { 0 };
    struct slice words[USERS_WORDS];
    size_t count = users_words(rules, words);
    struct buf text = { 0 };

    command_table_init(command_rows);
    for (size_t i = 0; i < count; i++) {
        const char *error = selector_apply(&selector, words[i]);

        assert_string_equal("", error != NULL ? error : "");
    }
    selector_put(&selector, &text);
    buf_append(&text, "", 1);
    assert_string_equal(shown, text.data);
    buf_free(&text);
    selector_fini(&selector);
}

static void
refuse(const char *rules, const char *reason)
{
    struct selector selector = { 0 };
    struct slice words[USERS_WORDS];
    size_t count = users_words(rules, words);

    command_table_init(command_rows);
    for (size_t i = 0; i < count; i++) {
        const char *error = selector_apply(&selector, words[i]);

        assert_string_equal(i + 1 < count ? "" : reason,
                            error != NULL ? error : "");
    }
    selector_fini(&selector);
}

TEST(selector_rules_are_shown_in_their_order)
{
    expect("", "resetchannels -@all");
    expect("+get +config|get +@read -del",
           "resetchannels -@all +get +config|get +@read -del");
}

TEST(selector_keeps_the_last_rule_of_a_name)
{
    expect("+get -get +GET", "resetchannels -@all +get");
    expect("+client|id +client", "resetchannels -@all +client");
    expect("+client -client|id", "resetchannels -@all +client -client|id");
    expect("+@read +get -@read", "resetchannels -@all +get -@read");
    expect("+get +@all -del", "resetchannels +@all -del");
    expect("+@all -@all", "resetchannels -@all");
    expect("allcommands nocommands", "resetchannels -@all");
}

TEST(selector_permits_a_first_argument)
{
    expect("+select|0 +select|1", "resetchannels -@all +select|0 +select|1");
    expect("+select|0 +select", "resetchannels -@all +select");
    refuse("-select|0", SELECTOR_UNKNOWN_COMMAND);
    refuse("+select|", SELECTOR_SYNTAX);
    refuse("+config|get|x",
           "Allowing first-arg of a subcommand is not supported");
}

TEST(selector_merges_patterns_of_keys)
{
    expect("~a %R~b %W~c %RW~d", "~a %R~b %W~c ~d resetchannels -@all");
    expect("%R~a %W~a", "~a resetchannels -@all");
    expect("%r~a", "%R~a resetchannels -@all");
    expect("~a allkeys", "~* resetchannels -@all");
    expect("~* resetkeys ~b", "~b resetchannels -@all");
    refuse("~* ~b", "Adding a pattern after the * pattern (or the 'allkeys' "
                    "flag) is not valid and does not have any effect. Try "
                    "'resetkeys' to start with an empty list of patterns");
    refuse("%X~k", SELECTOR_SYNTAX);
    refuse("%~k", SELECTOR_SYNTAX);
    refuse("%RR~k", SELECTOR_SYNTAX);
}

TEST(selector_lists_channels_once)
{
    expect("&a &b* &a", "resetchannels &a &b* -@all");
    expect("&a allchannels", "&* -@all");
    expect("&* resetchannels &c", "resetchannels &c -@all");
    refuse("&* &b", "Adding a pattern after the * pattern (or the "
                    "'allchannels' flag) is not valid and does not have any "
                    "effect. Try 'resetchannels' to start with an empty list "
                    "of channels");
}

TEST(selector_adds_up_databases)
{
    expect("db=0", "resetchannels db=0 -@all");
    expect("db=3,1 db=1023", "resetchannels db=1,3,1023 -@all");
    expect("db=3 resetdbs", "resetchannels resetdbs -@all");
    expect("resetdbs db=5", "resetchannels db=5 -@all");
    expect("db=3 alldbs", "resetchannels -@all");
    refuse("db=", SELECTOR_SYNTAX);
    refuse("db=1,", SELECTOR_SYNTAX);
    refuse("db=-1", SELECTOR_SYNTAX);
    refuse("db=1024", "The provided database ID is out of range");
}

TEST(selector_refuses_what_it_does_not_know)
{
    refuse("+nope", SELECTOR_UNKNOWN_COMMAND);
    refuse("-nope", SELECTOR_UNKNOWN_COMMAND);
    refuse("+@nope", SELECTOR_UNKNOWN_COMMAND);
    refuse("+@all|x", SELECTOR_UNKNOWN_COMMAND);
    refuse("+config|nope", SELECTOR_UNKNOWN_COMMAND);
    refuse("+", SELECTOR_UNKNOWN_COMMAND);
    refuse("on", SELECTOR_SYNTAX);
    refuse("x", SELECTOR_SYNTAX);
}

TEST(selector_refuses_patterns_with_blanks_or_too_much_work)
{
    static const char key[] = "~a\tb";
    char hard[1100];
    struct selector selector = { 0 };

    memset(hard, '?', sizeof(hard));
    hard[0] = '~';
    assert_ptr_equal(SELECTOR_SYNTAX, selector_apply(&selector, slice_of(key)));
    assert_non_null(
        selector_apply(&selector, (struct slice){ hard, sizeof(hard) }));
    assert_int_equal(0, selector.keys.len);
    selector_fini(&selector);
}

TEST(selector_categories_change_commands_and_all_their_subcommands)
{
    struct selector selector = { 0 };

    command_table_init(command_rows);
    assert_null(selector_apply(&selector, slice_lit("+@bloom")));
    assert_true(selector_has_command(&selector, CMD_ID_BF_ADD));
    assert_false(selector_has_command(&selector, CMD_ID_DEL));
    assert_null(selector_apply(&selector, slice_lit("+@slow")));
    assert_true(selector_has_command(&selector, CMD_ID_CONFIG_SET));
    assert_null(selector_apply(&selector, slice_lit("-@dangerous")));
    assert_false(selector_has_command(&selector, CMD_ID_CONFIG_SET));
    assert_true(selector_has_command(&selector, CMD_ID_ACL_WHOAMI));
    assert_null(selector_apply(&selector, slice_lit("-config|get")));
    assert_false(selector_is_free(&selector));
    selector_fini(&selector);
}

TEST(selector_is_free_only_with_everything)
{
    static const char *const rules[] = { "+@all", "~*", "&*" };
    struct selector selector = { 0 };

    command_table_init(command_rows);
    for (size_t i = 0; i < 3; i++) {
        assert_false(selector_is_free(&selector));
        assert_null(selector_apply(&selector, slice_of(rules[i])));
    }
    assert_true(selector_is_free(&selector));
    assert_null(selector_apply(&selector, slice_lit("db=0")));
    assert_false(selector_is_free(&selector));
    assert_null(selector_apply(&selector, slice_lit("alldbs")));
    assert_null(selector_apply(&selector, slice_lit("-ping")));
    assert_false(selector_is_free(&selector));
    selector_fini(&selector);
}

TEST(selector_survives_every_allocation_failure)
{
    static const char *const rules[] = { "+get", "+select|0", "~a", "&c" };
    bool fired = true;

    command_table_init(command_rows);
    for (unsigned nth = 1; fired; nth++) {
        struct selector selector = { 0 }, copy = { 0 };
        bool refused = false;

        mem_fail_at(nth);
        for (size_t i = 0; i < 4; i++) {
            refused = selector_apply(&selector, slice_of(rules[i])) ==
                          SELECTOR_NO_MEMORY ||
                      refused;
        }
        refused = !selector_copy(&selector, &copy) || refused;
        fired = mem_fail_clear();
        assert_true(refused == fired);
        selector_fini(&copy);
        selector_fini(&selector);
    }
}
