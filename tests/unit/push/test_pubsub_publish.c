/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counting the subscribers of a message, a piece at a time.
 */
#include "pubsub_help.h"

enum { MANY = 2000 };

/* Subscribes to patterns, half of which match the channel "c...". */
static void
subscribe_many(struct pubsub *pubsub, struct receiver *receiver)
{
    char pattern[16];

    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(pattern, sizeof(pattern), "%c[^%u]*", "cd"[i % 2], i);
        assert_int_equal(PUBSUB_OK,
                         subscribe(pubsub, receiver, PUBSUB_PATTERN, pattern));
    }
}

static unsigned
count_in_pieces(struct pubsub *pubsub, struct publishing *publishing)
{
    unsigned pieces = 1;

    while (!publishing_count(pubsub, publishing, 0)) {
        pieces++;
    }
    return pieces;
}

TEST(many_patterns_are_counted_in_pieces)
{
    struct pubsub *pubsub = pubsub_new(LOOPS);
    struct receiver a = receiver_on(0), b = receiver_on(2);
    struct publishing publishing = { .kind = NOTICE_MESSAGE,
                                     .channel = slice_lit("cx") };
    struct notice_list list = { 0 };

    subscribe_many(pubsub, &a);
    subscribe_many(pubsub, &b);
    (void)subscribe(pubsub, &b, PUBSUB_CHANNEL, "cx");
    assert_true(count_in_pieces(pubsub, &publishing) >= 2 * MANY / 300);
    assert_int_equal(MANY + 1, publishing.count);
    publishing_send(pubsub, &publishing, 0, slice_lit("m"), &list);
    assert_int_equal(2, list.count);
    assert_int_equal(0, list.posts[0].loop);
    assert_int_equal(2, list.posts[1].loop);
    notice_list_fini(&list);
    /* A shard channel has no patterns. */
    publishing = (struct publishing){ .kind = NOTICE_SHARD_MESSAGE,
                                      .channel = slice_lit("cx") };
    assert_int_equal(1, count_in_pieces(pubsub, &publishing));
    assert_int_equal(0, publishing.count);
    pubsub_leave(pubsub, &a);
    pubsub_leave(pubsub, &b);
    pubsub_free(pubsub);
}

/* A pattern that stays is counted once, while others are removed. */
TEST(patterns_may_go_while_they_are_counted)
{
    struct pubsub *pubsub = pubsub_new(1);
    struct receiver stays = receiver_on(0), goes = receiver_on(0);
    struct publishing publishing = { .kind = NOTICE_MESSAGE,
                                     .channel = slice_lit("cx") };
    char pattern[16];

    subscribe_many(pubsub, &stays);
    for (unsigned i = 0; i < 8 * MANY; i++) {
        (void)snprintf(pattern, sizeof(pattern), "d[^%u]*", i + MANY);
        (void)subscribe(pubsub, &goes, PUBSUB_PATTERN, pattern);
    }
    assert_false(publishing_count(pubsub, &publishing, 0));
    pubsub_leave(pubsub, &goes);
    (void)count_in_pieces(pubsub, &publishing);
    assert_int_equal(MANY / 2, publishing.count);
    pubsub_leave(pubsub, &stays);
    publishing_fini(&publishing);
    pubsub_free(pubsub);
}

/* More work than is done under the lock, but less than the limit. */
TEST(a_slow_pattern_is_matched_and_counted_without_the_lock)
{
    enum { CHANNEL = 16 << 10 };
    struct pubsub *pubsub = pubsub_new(1);
    struct receiver receiver = receiver_on(0);
    struct notice_list list = { 0 };
    char *channel = mem_alloc(CHANNEL);
    struct slice name = { channel, CHANNEL };

    memset(channel, 'a', CHANNEL);
    (void)subscribe(pubsub, &receiver, PUBSUB_PATTERN, "*aaaaaaaaaaaaaaa?b*");
    assert_int_equal(
        0, publish_as(pubsub, NOTICE_MESSAGE, name, slice_lit("m"), &list));
    assert_int_equal(0, list.count);
    channel[CHANNEL - 1] = 'b';
    assert_int_equal(
        1, publish_as(pubsub, NOTICE_MESSAGE, name, slice_lit("m"), &list));
    assert_int_equal(1, list.count);
    notice_list_fini(&list);
    pubsub_leave(pubsub, &receiver);
    mem_free(channel);
    pubsub_free(pubsub);
}

/* Events are published under locks, so slow patterns are left to the loop. */
TEST(an_event_goes_to_each_loop_that_may_have_subscribers)
{
    struct pubsub *pubsub = pubsub_new(LOOPS);
    struct receiver a = receiver_on(0), b = receiver_on(1);
    struct notice_list list = { 0 };
    char *channel = mem_zalloc(1 << 20);

    (void)subscribe(pubsub, &a, PUBSUB_PATTERN, "x*");
    (void)subscribe(pubsub, &b, PUBSUB_PATTERN, "*a?b*");
    pubsub_publish_event(pubsub, 0, slice_lit("yy"), slice_lit("m"), &list);
    assert_int_equal(0, list.count);
    pubsub_publish_event(pubsub, 0, slice_lit("xx"), slice_lit("m"), &list);
    assert_int_equal(1, list.count);
    assert_int_equal(0, list.posts[0].loop);
    pubsub_publish_event(pubsub, 0, (struct slice){ channel, 1 << 20 },
                         slice_lit("m"), &list);
    assert_int_equal(2, list.count);
    assert_int_equal(1, list.posts[1].loop);
    notice_list_fini(&list);
    pubsub_leave(pubsub, &a);
    pubsub_leave(pubsub, &b);
    mem_free(channel);
    pubsub_free(pubsub);
}

TEST(a_message_without_memory_is_lost_for_all_its_loops)
{
    struct pubsub *pubsub = pubsub_new(LOOPS);
    struct receiver a = receiver_on(0), b = receiver_on(2);
    struct notice_list list = { 0 };

    (void)subscribe(pubsub, &a, PUBSUB_CHANNEL, "c");
    (void)subscribe(pubsub, &b, PUBSUB_CHANNEL, "c");
    mem_fail_at(1);
    assert_int_equal(2, publish(pubsub, "c", &list));
    assert_true(mem_fail_clear());
    /* The second loop found memory again. */
    assert_int_equal(1, list.lost);
    assert_int_equal(1, list.count);
    pubsub_leave(pubsub, &a);
    pubsub_leave(pubsub, &b);
    notice_list_fini(&list);
    pubsub_free(pubsub);
}

TEST(a_slow_pattern_without_memory_is_for_the_loop_to_match)
{
    enum { CHANNEL = 16 << 10 };
    struct pubsub *pubsub = pubsub_new(1);
    struct receiver receiver = receiver_on(0);
    struct publishing publishing = { .kind = NOTICE_MESSAGE };
    char *channel = mem_zalloc(CHANNEL);

    (void)subscribe(pubsub, &receiver, PUBSUB_PATTERN, "*??????????????a*");
    publishing.channel = (struct slice){ channel, CHANNEL };
    mem_fail_at(1);
    assert_true(publishing_count(pubsub, &publishing, UINT64_MAX));
    assert_true(mem_fail_clear());
    assert_int_equal(0, publishing.count);
    assert_int_equal(1, publishing.stamp[0]);
    pubsub_leave(pubsub, &receiver);
    mem_free(channel);
    pubsub_free(pubsub);
}
