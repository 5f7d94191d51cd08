/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table: logins, changes, deletion, and what sessions keep.
 */
#include "access/users.h"

#include "base/mem.h"
#include "base/metrics.h"
#include "users_help.h"

static bool
can_login(const struct users *users, const char *name, const char *password)
{
    unsigned char digest[AUTH_DIGEST];

    auth_hash(slice_of(password), digest);
    return users_login(users, slice_of(name), digest) != NULL;
}

TEST(the_default_user_follows_requirepass)
{
    struct users *users = users_new_for_test();

    assert_false(users_ask_password(users));
    assert_true(can_login(users, "default", "anything"));
    assert_true(users->standard->unrestricted);
    users_follow_password(users, slice_lit("one"));
    assert_true(users_ask_password(users));
    assert_true(can_login(users, "default", "one"));
    assert_false(can_login(users, "default", "two"));
    assert_false(can_login(users, "Default", "one"));
    users_follow_password(users, slice_lit("two"));
    assert_false(can_login(users, "default", "one"));
    (void)users_must(users, "default", ">three");
    users_follow_password(users, slice_lit("two"));
    assert_true(can_login(users, "default", "two"));
    assert_true(can_login(users, "default", "three"));
    users_follow_password(users, slice_lit(""));
    assert_false(users_ask_password(users));
    users_free(users);
}

TEST(a_login_needs_a_user_that_is_on_and_its_password)
{
    struct users *users = users_new_for_test();
    int64_t before = metric_sum(METRIC_AUTH_FAILURES);

    (void)users_must(users, "u", ">p >q");
    assert_false(can_login(users, "u", "p"));
    (void)users_must(users, "u", "on");
    assert_true(can_login(users, "u", "p"));
    assert_true(can_login(users, "u", "q"));
    assert_false(can_login(users, "u", ""));
    assert_false(can_login(users, "nobody", "p"));
    assert_int_equal(before + 3, metric_sum(METRIC_AUTH_FAILURES));
    users_free(users);
}

TEST(a_user_that_is_off_makes_the_server_ask_for_a_password)
{
    struct users *users = users_new_for_test();

    (void)users_must(users, "default", "off");
    assert_true(users_ask_password(users));
    assert_false(can_login(users, "default", "x"));
    users_free(users);
}

TEST(a_refused_rule_changes_nothing)
{
    struct users *users = users_new_for_test();
    uint64_t changes;

    (void)users_must(users, "u", "on ~a");
    changes = users->changes;
    assert_string_not_equal("", users_try(users, "u", "off ~b +nope"));
    assert_string_not_equal("", users_try(users, "new", "on +nope"));
    users_expect(users, "u", "user u on ~a resetchannels -@all");
    assert_null(users_find(users, slice_lit("new")));
    assert_true(users->changes == changes);
    users_free(users);
}

TEST(a_deleted_user_stays_for_its_sessions_without_rights)
{
    struct users *users = users_new_for_test();
    struct user *user = user_ref(users_must(users, "u", "on ~* &* +@all"));

    assert_true(user->unrestricted && !user->gone);
    assert_true(users_delete(users, slice_lit("u")));
    assert_false(users_delete(users, slice_lit("u")));
    assert_true(user->gone && !user->unrestricted);
    assert_string_equal("u", user->name);
    user_unref(user);
    users_free(users);
}

TEST(a_draft_replaces_all_users_and_keeps_those_in_use)
{
    struct users *users = users_new_for_test();
    struct user *kept = user_ref(users_must(users, "kept", "on ~a"));
    struct user *lost = user_ref(users_must(users, "lost", "on ~* &* +@all"));
    struct users_draft draft = { 0 };
    bool no_memory;
    struct user *fresh = users_draft_add(&draft, slice_lit("kept"), &no_memory);

    fresh->rules.nopass = true;
    assert_null(users_draft_add(&draft, slice_lit("kept"), &no_memory));
    assert_false(no_memory);
    assert_non_null(users_draft_add(&draft, slice_lit("new"), &no_memory));
    users_follow_password(users, slice_lit("pw"));
    assert_true(users_draft_complete(&draft, users));
    users_take(users, &draft);
    assert_ptr_equal(kept, users_find(users, slice_lit("kept")));
    users_expect(users, "kept", "user kept off nopass resetchannels -@all");
    assert_true(lost->gone && !lost->unrestricted && !kept->gone);
    assert_null(users_find(users, slice_lit("lost")));
    assert_non_null(users_find(users, slice_lit("new")));
    assert_true(can_login(users, "default", "pw"));
    assert_true(users->standard->unrestricted);
    user_unref(kept);
    user_unref(lost);
    users_free(users);
}

TEST(users_survive_every_allocation_failure)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct users *users = users_new_for_test();
        const char *error;

        (void)users_must(users, "u", "on >p ~a (~b +get)");
        mem_fail_at(nth);
        error = users_try(users, "u", "+ping (~c)");
        fired = mem_fail_clear();
        assert_string_equal(fired ? SELECTOR_NO_MEMORY : "", error);
        assert_true(can_login(users, "u", "p"));
        users_free(users);
    }
}

TEST(users_are_sorted_by_their_names)
{
    struct users *users = users_new_for_test();
    struct user **list;
    size_t count;

    (void)users_must(users, "zz", "");
    (void)users_must(users, "z", "");
    (void)users_must(users, "A", "");
    list = users_sorted(users, &count);
    assert_int_equal(4, count);
    assert_string_equal("A", list[0]->name);
    assert_string_equal("default", list[1]->name);
    assert_string_equal("z", list[2]->name);
    assert_string_equal("zz", list[3]->name);
    mem_free(list);
    users_free(users);
}

TEST(a_copy_of_all_users_is_of_one_moment)
{
    struct users *users = users_new_for_test();
    struct users_copy copy = { 0 };

    (void)users_must(users, "b", "on ~x");
    (void)users_must(users, "a", "");
    assert_int_equal(USERS_COPY_ONE, users_copy_next(users, &copy));
    assert_int_equal(USERS_COPY_ONE, users_copy_next(users, &copy));
    (void)users_must(users, "b", "~y");
    assert_true(users_delete(users, slice_lit("a")));
    assert_int_equal(USERS_COPY_ONE, users_copy_next(users, &copy));
    assert_int_equal(1, copy.draft.count); /* it has begun anew */
    assert_int_equal(USERS_COPY_ONE, users_copy_next(users, &copy));
    assert_int_equal(USERS_COPY_ALL, users_copy_next(users, &copy));
    assert_int_equal(2, copy.draft.count);
    users_draft_sort(&copy.draft);
    assert_string_equal("b", copy.draft.list[0]->name);
    assert_int_equal(users_find(users, slice_lit("b"))->rules.root.keys.len,
                     copy.draft.list[0]->rules.root.keys.len);
    (void)users_must(users, "c", "");
    assert_int_equal(USERS_COPY_ONE, users_copy_next(users, &copy));
    users_copy_fini(&copy);
    users_free(users);
}

TEST(a_copy_of_users_survives_every_allocation_failure)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct users *users = users_new_for_test();
        struct users_copy copy = { 0 };
        enum users_copied copied;

        (void)users_must(users, "u", "on >p ~a (~b +get)");
        mem_fail_at(nth);
        do {
            copied = users_copy_next(users, &copy);
        } while (copied == USERS_COPY_ONE);
        fired = mem_fail_clear();
        assert_int_equal(fired ? USERS_COPY_NO_MEMORY : USERS_COPY_ALL, copied);
        users_copy_fini(&copy);
        users_free(users);
    }
}
