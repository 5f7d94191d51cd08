/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rules of a user: passwords, selectors, and what is shown of them.
 */
#include "access/user.h"

#include "base/mem.h"
#include "users_help.h"

#define FOO "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"

TEST(a_new_user_is_off_and_may_do_nothing)
{
    struct users *users = users_new_for_test();

    (void)users_must(users, "u", "");
    users_expect(users, "u", "user u off resetchannels -@all");
    users_free(users);
}

TEST(passwords_are_added_once_and_removed)
{
    struct users *users = users_new_for_test();

    (void)users_must(users, "u", "on >foo #" FOO);
    users_expect(users, "u", "user u on #" FOO " resetchannels -@all");
    (void)users_must(users, "u", ">bar <bar");
    users_expect(users, "u", "user u on #" FOO " resetchannels -@all");
    assert_string_equal("The password you are trying to remove from the user "
                        "does not exist",
                        users_try(users, "u", "<bar"));
    (void)users_must(users, "u", "!" FOO);
    users_expect(users, "u", "user u on resetchannels -@all");
    assert_string_equal("The password hash must be exactly 64 characters and "
                        "contain only lowercase hexadecimal characters",
                        users_try(users, "u", "#abc"));
    users_free(users);
}

TEST(nopass_and_passwords_exclude_each_other)
{
    struct users *users = users_new_for_test();

    (void)users_must(users, "u", ">foo nopass");
    users_expect(users, "u", "user u off nopass resetchannels -@all");
    (void)users_must(users, "u", ">foo");
    users_expect(users, "u", "user u off #" FOO " resetchannels -@all");
    (void)users_must(users, "u", "nopass resetpass");
    users_expect(users, "u", "user u off resetchannels -@all");
    users_free(users);
}

TEST(selectors_may_be_one_word_or_several)
{
    struct users *users = users_new_for_test();

    (void)users_must(users, "u", "(~a +get) (%R~b ) ()");
    users_expect(users, "u",
                 "user u off resetchannels -@all (~a resetchannels -@all +get) "
                 "(%R~b resetchannels -@all) (resetchannels -@all)");
    assert_string_equal("no end", users_try(users, "u", "on (~a"));
    assert_string_equal("no end", users_try(users, "u", "(~a)b"));
    assert_ptr_equal(SELECTOR_SYNTAX, users_try(users, "u", "(on)"));
    assert_ptr_equal(SELECTOR_SYNTAX, users_try(users, "u", ")"));
    (void)users_must(users, "u", "clearselectors");
    users_expect(users, "u", "user u off resetchannels -@all");
    users_free(users);
}

TEST(reset_takes_everything_away)
{
    struct users *users = users_new_for_test();

    (void)users_must(users, "u",
                     "on >foo ~* &* +@all db=1 (~a) "
                     "skip-sanitize-payload");
    users_expect(users, "u",
                 "user u on skip-sanitize-payload #" FOO
                 " ~* &* db=1 +@all (~a resetchannels -@all)");
    (void)users_must(users, "u", "reset");
    users_expect(users, "u", "user u off sanitize-payload resetchannels -@all");
    users_free(users);
}

TEST(any_selector_may_permit_a_command)
{
    struct users *users = users_new_for_test();
    const struct user *user =
        users_must(users, "u", "+bf.exists %R~r* (+bf.add ~w*) (+del ~d*)");
    struct slice words[] = { { "BF.ADD", 6 }, { "w1", 2 }, { "x", 1 } };
    struct permission_query query = { command_at(CMD_ID_BF_ADD), words, 3, 0 };
    size_t at = 0;

    assert_int_equal(DENIED_NOTHING, user_check(user, &query, &at));
    words[1] = slice_lit("d1");
    assert_int_equal(DENIED_KEY, user_check(user, &query, &at));
    assert_int_equal(1, at);
    query.command = command_at(CMD_ID_BF_CARD);
    assert_int_equal(DENIED_COMMAND, user_check(user, &query, &at));
    users_free(users);
}

/* With any work for a slice, a check gives the same answer in the end. */
TEST(a_check_in_slices_ends_as_a_whole_one)
{
    struct users *users = users_new_for_test();
    const struct user *user = users_must(
        users, "u", "+exists ~a ~b &c (+exists ~*k* ~a) (+subscribe &c &d)");
    const struct {
        unsigned id;
        const char *names[4];
        enum denial denial;
        size_t at;
    } rows[] = {
        { CMD_ID_EXISTS, { "a", "b", "a", "b" }, DENIED_NOTHING, 0 },
        { CMD_ID_EXISTS, { "a", "k", "kk", "a" }, DENIED_NOTHING, 0 },
        { CMD_ID_EXISTS, { "a", "k", "b", "a" }, DENIED_KEY, 3 },
        { CMD_ID_SUBSCRIBE, { "c", "d", "c", "d" }, DENIED_NOTHING, 0 },
        { CMD_ID_SUBSCRIBE, { "c", "d", "c", "e" }, DENIED_CHANNEL, 4 },
        { CMD_ID_DEL, { "a", "b", "c", "d" }, DENIED_COMMAND, 0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int64_t slice = 5; slice < 60; slice++) {
            struct slice words[5] = { slice_lit("x") };
            const struct permission_query query = { command_at(rows[i].id),
                                                    words, 5, 0 };
            struct user_progress progress = { 0 };
            enum denial denial;
            size_t at = 0;

            for (int n = 0; n < 4; n++) {
                words[n + 1] = slice_of(rows[i].names[n]);
            }
            do {
                int64_t work = slice;

                denial = user_check_some(user, &query, &progress, &work, &at);
            } while (denial == UNDECIDED);
            assert_int_equal(rows[i].denial, denial);
            assert_int_equal(rows[i].at, at);
        }
    }
    users_free(users);
}

TEST(names_have_no_blanks)
{
    assert_true(user_name_is_valid(slice_lit("a-b")));
    assert_false(user_name_is_valid(slice_lit("")));
    assert_false(user_name_is_valid(slice_lit("a b")));
    assert_false(user_name_is_valid(slice_lit("a\n")));
    assert_false(user_name_is_valid(slice_lit("a\0b")));
}

/* Applies a rule of two words, and counts the calls. */
static unsigned
calls_for(struct user_rules *rules, struct slice first, struct slice second,
          enum user_applied *ret_applied)
{
    const struct slice words[] = { first, second };
    struct user_refusal refusal = { 0 };
    unsigned calls = 0;
    size_t at = 0;

    do {
        *ret_applied = user_rules_apply_next(rules, words, 2, &at, &refusal);
        calls++;
    } while (*ret_applied == USER_IN_PART);
    assert_null(rules->part);
    assert_true(*ret_applied == USER_REFUSED || at > 0);
    assert_true(refusal.words.len <= 1024);
    buf_free(&refusal.words);
    user_rules_settle(rules);
    return calls;
}

TEST(long_selectors_and_passwords_are_applied_in_pieces)
{
    struct user_rules rules = { 0 };
    struct buf selector = { 0 }, password = { 0 };
    unsigned char digest[AUTH_DIGEST];
    enum user_applied applied;

    command_table_init(command_rows);
    buf_append_slice(&selector, slice_lit("(+get"));
    for (unsigned i = 0; i < 1000; i++) {
        buf_printf(&selector, " ~key:%u", i);
    }
    buf_append_slice(&password, slice_lit(">"));
    while (password.len <= (size_t)1 << 20) {
        buf_append_slice(&password, slice_lit("0123456789abcdef"));
    }
    assert_true(calls_for(&rules, buf_slice(&selector), slice_lit("~x)"),
                          &applied) > 3);
    assert_int_equal(USER_APPLIED, applied);
    assert_non_null(rules.root.next);
    assert_non_null(memmem(rules.root.next->keys.data,
                           rules.root.next->keys.len, "key:999", 7));
    assert_true(calls_for(&rules, buf_slice(&selector), slice_lit("no)"),
                          &applied) > 3);
    assert_int_equal(USER_REFUSED, applied);
    assert_null(rules.root.next->next);
    assert_int_equal(
        1, calls_for(&rules, buf_slice(&selector), slice_lit("~x"), &applied));
    assert_int_equal(USER_REFUSED, applied); /* it does not end */

    assert_true(
        calls_for(&rules, buf_slice(&password), slice_lit(""), &applied) > 7);
    assert_int_equal(USER_APPLIED, applied);
    auth_hash((struct slice){ password.data + 1, password.len - 1 }, digest);
    assert_true(user_rules_fit(&rules, digest));
    password.data[0] = '<';
    assert_true(
        calls_for(&rules, buf_slice(&password), slice_lit(""), &applied) > 7);
    assert_false(user_rules_fit(&rules, digest));
    user_rules_fini(&rules);
    buf_free(&selector);
    buf_free(&password);
}

TEST(a_rule_that_is_begun_goes_with_its_user)
{
    struct user_rules rules = { 0 };
    struct user_refusal refusal = { 0 };
    struct buf password = { 0 };
    struct slice word;
    size_t at = 0;

    buf_append_slice(&password, slice_lit(">"));
    while (password.len <= (size_t)1 << 18) {
        buf_append_slice(&password, slice_lit("0123456789abcdef"));
    }
    word = buf_slice(&password);
    assert_int_equal(USER_IN_PART,
                     user_rules_apply_next(&rules, &word, 1, &at, &refusal));
    assert_int_equal(0, at);
    user_rules_fini(&rules);
    assert_null(rules.part);
    buf_free(&password);
}
