/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The aclfile: what is written reads back, and every bad line is named.
 */
#include "access/users_file.h"

#include "base/mem.h"
#include "users_help.h"
#include "write_help.h"

static void
expect_error(const char *text, const char *error)
{
    struct users *users = users_new_for_test();
    struct users_draft draft = { 0 };
    struct buf errors = { 0 };

    assert_false(users_file_read(users, "f", slice_of(text), &draft, &errors));
    buf_append(&errors, "", 1);
    if (strncmp(error, errors.data, strlen(error)) != 0) {
        fail_msg("%s", errors.data);
    }
    assert_int_equal(0, draft.count);
    buf_free(&errors);
    users_free(users);
}

TEST(what_is_written_reads_back)
{
    struct users *users = users_new_for_test();
    struct users_draft draft = { 0 };
    struct buf text = { 0 }, again = { 0 }, errors = { 0 };

    (void)users_must(users, "u",
                     "on >p ~a %R~b &c db=1 +get +select|0 "
                     "(~d -@all) reset on >q (~x +@bloom)");
    (void)users_must(users, "v", "%RW~* ~k* (%R~* %W~* ~(k)");
    (void)users_must(users, "default", "~* -debug");
    assert_true(write_all(users, &text, &errors));
    assert_true(users_file_read(users, "f", buf_slice(&text), &draft, &errors));
    users_take(users, &draft);
    assert_true(write_all(users, &again, &errors));
    assert_true(slice_equal(buf_slice(&text), buf_slice(&again)));
    buf_free(&text);
    buf_free(&again);
    users_free(users);
}

TEST(a_file_may_have_comments_blank_lines_and_any_line_end)
{
    struct users *users = users_new_for_test();
    struct users_draft draft = { 0 };
    struct buf errors = { 0 };

    assert_true(users_file_read(
        users, "f", slice_lit("# c\r\n\n  \nuser  a on (~x  +get)\r\nuser b"),
        &draft, &errors));
    users_take(users, &draft);
    users_expect(users, "a",
                 "user a on resetchannels -@all (~x resetchannels -@all +get)");
    users_expect(users, "b", "user b off resetchannels -@all");
    users_expect(users, "default", "user default on nopass ~* &* +@all");
    users_free(users);
}

TEST(each_bad_line_is_named)
{
    expect_error("usr b",
                 "f:1 should start with user keyword followed by the "
                 "username. WARNING: ACL errors detected, no change to the "
                 "previously active ACL rules was performed");
    expect_error("\nuser", "f:2 should start with user");
    expect_error("user a +nope",
                 "f:1: Error in applying operation '+nope': Unknown command "
                 "or category name in ACL. WARNING");
    expect_error("user a >secret x", "f:1: Syntax error. WARNING");
    expect_error("user a\nuser a", "f:2: WARNING: Duplicate user 'a'. WARNING");
    expect_error("user a (~x",
                 "f:1: Unmatched parenthesis in selector definition. WARNING");
    expect_error("user a\vb on",
                 "f:1: the username contains invalid characters. WARNING");
    expect_error("user a x\nuser b y",
                 "f:1: Syntax error. f:2: Syntax error. ");
}

TEST(a_line_may_have_as_many_rules_as_setuser_takes)
{
    enum { WORDS = 65536 + 10 };
    struct buf text = { 0 }, errors = { 0 };
    struct users *users = users_new_for_test();
    struct users_draft draft = { 0 };

    buf_append_slice(&text, slice_lit("user a"));
    for (size_t i = 0; i < WORDS; i++) {
        buf_append_slice(&text, slice_lit(" on"));
    }
    assert_true(users_file_read(users, "f", buf_slice(&text), &draft, &errors));
    users_draft_free(&draft);
    buf_append_slice(&text, slice_lit(" x"));
    buf_append(&text, "", 1);
    expect_error(text.data, "f:1: Syntax error. WARNING");
    buf_free(&text);
    users_free(users);
}

/* A word that a line could not have, or that would begin another line. */
TEST(what_a_line_cannot_say_is_refused)
{
    static const char *const rules[] = {
        "+select|0 1",
        "+get|a\tb",
        "+select|0\nuser evil on nopass ~* &* +@all",
        "~a\rb",
        "&a\vb",
        "(~x))",
        "(~(x ~y))",
        "(~x &y) +get)",
    };
    struct users *users = users_new_for_test();

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        struct slice word = slice_of(rules[i]);
        struct user_refusal refusal = { 0 };

        assert_false(users_set(users, slice_lit("u"), &word, 1, &refusal));
        assert_string_equal(SELECTOR_SYNTAX, refusal.reason);
        buf_free(&refusal.words);
    }
    assert_null(users_find(users, slice_lit("u")));
    users_free(users);
}

TEST(reading_survives_every_allocation_failure)
{
    struct users *users = users_new_for_test();
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct users_draft draft = { 0 };
        struct buf errors = { 0 };
        bool done;

        mem_fail_at(nth);
        done = users_file_read(users, "f", slice_lit("user a on >p ~x (~y)"),
                               &draft, &errors);
        fired = mem_fail_clear();
        assert_true(done == !fired);
        buf_free(&errors);
        users_draft_free(&draft);
    }
    users_free(users);
}
