/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Subscriptions on several loops.
 */
#include "pubsub_help.h"

TEST(subscriptions_are_counted_by_kind)
{
    uint64_t used = mem_used();
    struct pubsub *pubsub = pubsub_new(LOOPS);
    struct receiver receiver = receiver_on(1);
    int64_t clients = metric_sum(METRIC_PUBSUB_CLIENTS);
    struct slice name;

    assert_false(pubsub_any(&receiver, PUBSUB_CHANNEL, &name));
    assert_int_equal(PUBSUB_OK,
                     subscribe(pubsub, &receiver, PUBSUB_CHANNEL, "abc"));
    assert_int_equal(PUBSUB_ALREADY,
                     subscribe(pubsub, &receiver, PUBSUB_CHANNEL, "abc"));
    assert_int_equal(PUBSUB_OK,
                     subscribe(pubsub, &receiver, PUBSUB_SHARD, "abc"));
    assert_int_equal(PUBSUB_OK,
                     subscribe(pubsub, &receiver, PUBSUB_PATTERN, "a*"));
    assert_int_equal(1, pubsub_count(&receiver, PUBSUB_CHANNEL));
    assert_int_equal(1, pubsub_count(&receiver, PUBSUB_PATTERN));
    assert_int_equal(1, pubsub_count(&receiver, PUBSUB_SHARD));
    assert_int_equal(8, pubsub_bytes(&receiver));
    assert_int_equal(clients + 1, metric_sum(METRIC_PUBSUB_CLIENTS));
    assert_true(pubsub_has(&receiver, PUBSUB_SHARD, slice_lit("abc")));
    assert_false(pubsub_has(&receiver, PUBSUB_PATTERN, slice_lit("abc")));
    assert_true(pubsub_any(&receiver, PUBSUB_PATTERN, &name));
    assert_true(slice_equal(name, slice_lit("a*")));
    assert_int_equal(
        PUBSUB_NONE,
        pubsub_unsubscribe(pubsub, &receiver, PUBSUB_CHANNEL, slice_lit("x")));
    assert_int_equal(PUBSUB_OK,
                     pubsub_unsubscribe(pubsub, &receiver, PUBSUB_CHANNEL,
                                        slice_lit("abc")));
    pubsub_leave(pubsub, &receiver);
    assert_null(receiver.subscriptions);
    assert_int_equal(0, pubsub_bytes(&receiver));
    assert_int_equal(clients, metric_sum(METRIC_PUBSUB_CLIENTS));
    pubsub_leave(pubsub, &receiver);
    pubsub_free(pubsub);
    assert_int_equal(used, mem_used());
}

TEST(publishing_counts_the_channel_and_each_pattern)
{
    struct pubsub *pubsub = pubsub_new(LOOPS);
    struct receiver a = receiver_on(0), b = receiver_on(2), c = receiver_on(2);
    struct notice_list list = { 0 };

    (void)subscribe(pubsub, &a, PUBSUB_CHANNEL, "news");
    (void)subscribe(pubsub, &b, PUBSUB_PATTERN, "n*");
    (void)subscribe(pubsub, &b, PUBSUB_PATTERN, "*s");
    (void)subscribe(pubsub, &b, PUBSUB_CHANNEL, "news");
    (void)subscribe(pubsub, &c, PUBSUB_SHARD, "news");
    assert_int_equal(4, publish(pubsub, "news", &list));
    assert_int_equal(2, list.count); /* a notice for each loop */
    assert_ptr_equal(list.posts[0].notice, list.posts[1].notice);
    assert_int_equal(0, list.posts[0].loop);
    assert_int_equal(2, list.posts[1].loop);
    assert_int_equal(0, publish(pubsub, "old", &list));
    assert_int_equal(1, publish_as(pubsub, NOTICE_SHARD_MESSAGE,
                                   slice_lit("news"), slice_lit("m"), &list));
    assert_int_equal(3, list.count);
    assert_int_equal(
        2, pubsub_subscribers(pubsub, PUBSUB_CHANNEL, slice_lit("news")));
    assert_int_equal(
        0, pubsub_subscribers(pubsub, PUBSUB_CHANNEL, slice_lit("n*")));
    assert_int_equal(1, pubsub_names(pubsub, PUBSUB_CHANNEL));
    assert_int_equal(2, pubsub_names(pubsub, PUBSUB_PATTERN));
    assert_int_equal(1, pubsub_names(pubsub, PUBSUB_SHARD));
    pubsub_leave(pubsub, &b);
    assert_int_equal(1, publish(pubsub, "news", &list));
    assert_int_equal(0, pubsub_names(pubsub, PUBSUB_PATTERN));
    pubsub_leave(pubsub, &a);
    pubsub_leave(pubsub, &c);
    notice_list_fini(&list);
    pubsub_free(pubsub);
}

/* Lists all names, unordered, and returns how many. */
static size_t
list_all(struct pubsub *pubsub, struct buf *ret_names, unsigned *ret_calls)
{
    uint64_t cursor = 0;
    struct slice name;
    size_t count = 0;
    size_t at = 0;

    ret_names->len = 0;
    *ret_calls = 0;
    do {
        cursor = pubsub_names_from(pubsub, PUBSUB_CHANNEL, cursor, ret_names);
        (*ret_calls)++;
    } while (cursor != 0);
    while (buf_next_item(ret_names, &at, &name)) {
        count++;
    }
    return count;
}

TEST(names_are_listed_once_however_many_loops_have_them)
{
    struct pubsub *pubsub = pubsub_new(LOOPS);
    struct receiver r[LOOPS];
    struct buf names = { 0 };
    unsigned calls;

    assert_int_equal(0, list_all(pubsub, &names, &calls));
    for (unsigned i = 0; i < LOOPS; i++) {
        r[i] = receiver_on(i);
        (void)subscribe(pubsub, &r[i], PUBSUB_CHANNEL, "all");
    }
    assert_int_equal(1, list_all(pubsub, &names, &calls));
    (void)subscribe(pubsub, &r[0], PUBSUB_CHANNEL, "one");
    assert_int_equal(2, list_all(pubsub, &names, &calls));
    assert_int_equal(1, calls);
    for (unsigned i = 0; i < LOOPS; i++) {
        assert_int_equal(i < LOOPS ? 2 : 1,
                         pubsub_names(pubsub, PUBSUB_CHANNEL));
        pubsub_leave(pubsub, &r[LOOPS - 1 - i]);
    }
    assert_int_equal(0, pubsub_names(pubsub, PUBSUB_CHANNEL));
    buf_free(&names);
    pubsub_free(pubsub);
}

TEST(many_names_are_listed_a_piece_at_a_time)
{
    enum { NAMES = 5000 };
    struct pubsub *pubsub = pubsub_new(LOOPS);
    struct receiver receiver = receiver_on(1);
    struct buf names = { 0 };
    unsigned calls;
    char name[16];

    for (unsigned i = 0; i < NAMES; i++) {
        (void)snprintf(name, sizeof(name), "name-%u", i);
        (void)subscribe(pubsub, &receiver, PUBSUB_CHANNEL, name);
    }
    assert_int_equal(NAMES, list_all(pubsub, &names, &calls));
    assert_true(calls >= 10 && calls < NAMES);
    pubsub_leave(pubsub, &receiver);
    buf_free(&names);
    pubsub_free(pubsub);
}

/* ---- without memory ------------------------------------------------------ */

TEST(a_subscription_without_memory_leaves_nothing_behind)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        uint64_t used = mem_used();
        struct pubsub *pubsub = pubsub_new(2);
        struct receiver receiver = receiver_on(1);
        enum pubsub_result result;

        mem_fail_at(nth);
        result = subscribe(pubsub, &receiver, PUBSUB_PATTERN, "a*");
        fired = mem_fail_clear();
        assert_int_equal(fired ? PUBSUB_NOMEM : PUBSUB_OK, result);
        assert_int_equal(!fired, pubsub_names(pubsub, PUBSUB_PATTERN));
        assert_int_equal(!fired, pubsub_count(&receiver, PUBSUB_PATTERN));
        assert_true((receiver.subscriptions == NULL) == fired);
        pubsub_leave(pubsub, &receiver);
        pubsub_free(pubsub);
        assert_int_equal(used, mem_used());
        assert_true(nth < 20);
    }
}

/* ---- many ---------------------------------------------------------------- */

TEST(many_subscriptions_come_and_go)
{
    enum { RECEIVERS = 20, NAMES = 50, STEPS = 20000 };
    uint64_t used = mem_used();
    struct pubsub *pubsub = pubsub_new(LOOPS);
    struct receiver r[RECEIVERS];
    static bool has[RECEIVERS][NAMES];
    unsigned per_name[NAMES] = { 0 };
    struct notice_list list = { 0 };
    char name[16];

    srand((unsigned)test_seed());
    memset(has, 0, sizeof(has));
    for (unsigned i = 0; i < RECEIVERS; i++) {
        r[i] = receiver_on(i % LOOPS);
    }
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned i = (unsigned)rand() % RECEIVERS;
        unsigned n = (unsigned)rand() % NAMES;
        enum pubsub_result result;

        (void)snprintf(name, sizeof(name), "name-%u", n);
        if (rand() % 2 == 0) {
            result = subscribe(pubsub, &r[i], PUBSUB_CHANNEL, name);
            assert_int_equal(has[i][n] ? PUBSUB_ALREADY : PUBSUB_OK, result);
            per_name[n] += !has[i][n];
            has[i][n] = true;
        } else {
            result = pubsub_unsubscribe(pubsub, &r[i], PUBSUB_CHANNEL,
                                        slice_of(name));
            assert_int_equal(has[i][n] ? PUBSUB_OK : PUBSUB_NONE, result);
            per_name[n] -= has[i][n];
            has[i][n] = false;
        }
        assert_int_equal(per_name[n], publish(pubsub, name, &list));
        notice_list_fini(&list);
    }
    for (unsigned i = 0; i < RECEIVERS; i++) {
        pubsub_leave(pubsub, &r[i]);
    }
    assert_int_equal(0, pubsub_names(pubsub, PUBSUB_CHANNEL));
    pubsub_free(pubsub);
    assert_int_equal(used, mem_used());
}
