/* SPDX-License-Identifier: BSD-3-Clause */
#include "push/prefixes.h"

#include "../test.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static int someone, other;

struct heard {
    unsigned someone, other;
};

static void
hear(void *ctx, void *follower)
{
    struct heard *heard = ctx;

    heard->someone += follower == &someone;
    heard->other += follower == &other;
}

static struct heard
hears(struct prefixes *prefixes, const char *name)
{
    struct heard heard = { 0, 0 };

    assert_true(
        prefixes_each(prefixes, slice_of(name), hear, &heard, UINT64_MAX));
    return heard;
}

TEST(followers_are_visited_for_names_with_their_prefix)
{
    struct prefixes prefixes;

    prefixes_init(&prefixes);
    assert_false(prefixes_match(&prefixes, slice_lit("user:1")));
    assert_true(prefixes_add(&prefixes, slice_lit("user:"), &someone));
    assert_true(prefixes_add(&prefixes, slice_lit("us"), &other));
    assert_true(prefixes_add(&prefixes, slice_lit("x"), &other));
    assert_true(prefixes_match(&prefixes, slice_lit("user:1")));
    assert_true(prefixes_match(&prefixes, slice_lit("use")));
    assert_false(prefixes_match(&prefixes, slice_lit("u")));
    assert_false(prefixes_match(&prefixes, slice_lit("")));
    assert_int_equal(hears(&prefixes, "user:").someone, 1);
    assert_int_equal(hears(&prefixes, "user:").other, 1);
    assert_int_equal(hears(&prefixes, "use").someone, 0);
    assert_int_equal(hears(&prefixes, "xyz").other, 1);
    assert_true(prefixes_have(&prefixes, slice_lit("us")));
    assert_false(prefixes_have(&prefixes, slice_lit("use")));
    prefixes_remove(&prefixes, slice_lit("us"), &other);
    assert_false(prefixes_match(&prefixes, slice_lit("use")));
    assert_true(prefixes_match(&prefixes, slice_lit("user:1")));
    prefixes_remove(&prefixes, slice_lit("user:"), &someone);
    prefixes_remove(&prefixes, slice_lit("x"), &other);
    assert_false(prefixes_match(&prefixes, slice_lit("user:1")));
    prefixes_fini(&prefixes);
}

TEST(the_empty_prefix_is_of_every_name)
{
    struct prefixes prefixes;

    prefixes_init(&prefixes);
    assert_true(prefixes_add(&prefixes, slice_lit(""), &someone));
    assert_true(prefixes_match(&prefixes, slice_lit("")));
    assert_int_equal(hears(&prefixes, "anything").someone, 1);
    prefixes_remove(&prefixes, slice_lit(""), &someone);
    prefixes_fini(&prefixes);
}

TEST(several_follow_one_prefix_and_leave_in_any_order)
{
    struct prefixes prefixes;
    int crowd[100];

    prefixes_init(&prefixes);
    for (int i = 0; i < 100; i++) {
        assert_true(prefixes_add(&prefixes, slice_lit("p"), &crowd[i]));
    }
    assert_true(prefixes_add(&prefixes, slice_lit("p"), &someone));
    for (int i = 0; i < 100; i++) {
        prefixes_remove(&prefixes, slice_lit("p"), &crowd[i * 37 % 100]);
        assert_int_equal(hears(&prefixes, "pq").someone, 1);
    }
    prefixes_remove(&prefixes, slice_lit("p"), &someone);
    prefixes_fini(&prefixes);
}

TEST(prefixes_that_others_have_are_not_new)
{
    struct prefixes one, two;
    struct prefixes *others[] = { &one };

    prefixes_init(&one);
    prefixes_init(&two);
    assert_true(prefixes_add(&one, slice_lit("a"), &someone));
    assert_true(prefixes_add(&one, slice_lit("b"), &someone));
    assert_true(prefixes_add(&two, slice_lit("b"), &someone));
    assert_true(prefixes_add(&two, slice_lit("c"), &someone));
    assert_int_equal(prefixes_count_new(&one, NULL, 0), 2);
    assert_int_equal(prefixes_count_new(&two, others, 1), 1);
    prefixes_remove(&one, slice_lit("a"), &someone);
    prefixes_remove(&one, slice_lit("b"), &someone);
    prefixes_remove(&two, slice_lit("b"), &someone);
    prefixes_remove(&two, slice_lit("c"), &someone);
    prefixes_fini(&one);
    prefixes_fini(&two);
}

TEST(without_memory_no_follower_is_added_and_nothing_else_changes)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct prefixes prefixes;
        bool added;

        prefixes_init(&prefixes);
        assert_true(prefixes_add(&prefixes, slice_lit("old"), &someone));
        mem_fail_at(nth);
        added = prefixes_add(&prefixes, slice_lit("newer"), &other);
        fired = mem_fail_clear();
        assert_true(added || fired);
        assert_int_equal(prefixes_match(&prefixes, slice_lit("newer")), added);
        assert_true(prefixes_match(&prefixes, slice_lit("older")));
        if (added) {
            prefixes_remove(&prefixes, slice_lit("newer"), &other);
        }
        prefixes_remove(&prefixes, slice_lit("old"), &someone);
        prefixes_fini(&prefixes);
    }
}

/* ---- in pieces ----------------------------------------------------------- */

enum { FOLLOWERS = 200 };

static void
count_visit(void *ctx, void *follower)
{
    (void)ctx;
    ++*(unsigned *)follower;
}

/* Two prefixes of the name have the same followers. Between two pieces some go,
 * visited or not. All that stay are visited exactly once for each prefix. */
TEST(a_walk_in_pieces_visits_each_follower_that_stays)
{
    static const char *const names[] = { "u", "user:" };
    uint64_t random = test_seed();

    for (unsigned round = 0; round < 50; round++) {
        unsigned visits[FOLLOWERS] = { 0 };
        bool gone[FOLLOWERS] = { false };
        struct prefixes prefixes;
        unsigned pieces = 1;

        prefixes_init(&prefixes);
        for (unsigned i = 0; i < 2 * FOLLOWERS; i++) {
            assert_true(prefixes_add(&prefixes, slice_of(names[i % 2]),
                                     &visits[i / 2]));
        }
        while (!prefixes_each(&prefixes, slice_lit("user:1"), count_visit, NULL,
                              0)) {
            for (uint64_t n = test_random_below(&random, 40); n > 0; n--) {
                unsigned i = (unsigned)test_random_below(&random, FOLLOWERS);

                for (unsigned p = 0; !gone[i] && p < 2; p++) {
                    prefixes_remove(&prefixes, slice_of(names[p]), &visits[i]);
                }
                gone[i] = true;
            }
            pieces++;
        }
        assert_true(pieces > 2);
        for (unsigned i = 0; i < FOLLOWERS; i++) {
            assert_true(gone[i] ? visits[i] <= 2 : visits[i] == 2);
            for (unsigned p = 0; !gone[i] && p < 2; p++) {
                prefixes_remove(&prefixes, slice_of(names[p]), &visits[i]);
            }
        }
        prefixes_fini(&prefixes);
    }
}
