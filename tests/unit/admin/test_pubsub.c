/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Subscriptions of several loops, one of which has connections.
 */
#include "admin/pubsub.h"

#include "../net/rig.h"
#include "net/push.h"

enum { LOOPS = 3 };

static const unsigned resp2 = 2, resp3 = 3;

static struct receiver
receiver_on(unsigned loop)
{
    return (struct receiver){ .loop = loop, .resp = &resp2 };
}

static uint64_t
publish(struct pubsub *pubsub, const char *channel, struct notice_list *list)
{
    return pubsub_publish(pubsub, NOTICE_MESSAGE, 0, slice_of(channel),
                          slice_lit("m"), list);
}

static enum pubsub_result
subscribe(struct pubsub *pubsub, struct receiver *receiver,
          enum pubsub_kind kind, const char *name)
{
    return pubsub_subscribe(pubsub, receiver, kind, slice_of(name));
}

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

TEST(publishing_counts_every_way_in_which_it_is_heard)
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
    assert_int_equal(1,
                     pubsub_publish(pubsub, NOTICE_SHARD_MESSAGE, 0,
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

TEST(names_are_listed_once_however_many_loops_have_them)
{
    struct pubsub *pubsub = pubsub_new(LOOPS);
    struct receiver r[LOOPS];
    struct buf bulks = { 0 };

    for (unsigned i = 0; i < LOOPS; i++) {
        r[i] = receiver_on(i);
        (void)subscribe(pubsub, &r[i], PUBSUB_CHANNEL, "all");
    }
    (void)subscribe(pubsub, &r[0], PUBSUB_CHANNEL, "one");
    assert_int_equal(
        1, pubsub_list(pubsub, PUBSUB_CHANNEL, slice_lit("a*"), false, &bulks));
    assert_int_equal(9, bulks.len);
    assert_memory_equal("$3\r\nall\r\n", bulks.data, 9);
    bulks.len = 0;
    assert_int_equal(
        2, pubsub_list(pubsub, PUBSUB_CHANNEL, slice_lit(""), true, &bulks));
    assert_int_equal(18, bulks.len);
    for (unsigned i = 0; i < LOOPS; i++) {
        assert_int_equal(i < LOOPS ? 2 : 1,
                         pubsub_names(pubsub, PUBSUB_CHANNEL));
        pubsub_leave(pubsub, &r[LOOPS - 1 - i]);
    }
    assert_int_equal(0, pubsub_names(pubsub, PUBSUB_CHANNEL));
    buf_free(&bulks);
    pubsub_free(pubsub);
}

/* ---- delivery ------------------------------------------------------------ */

struct hearer {
    struct peer peer;
    struct receiver receiver;
};

static struct hearer
hearer_new(struct rig *rig, const unsigned *resp)
{
    struct hearer hearer = { .peer = peer_new(rig, false) };

    hearer.receiver = (struct receiver){ .conn = rig->last, .resp = resp };
    return hearer;
}

/* Delivers what loop 0 has in the list. */
static void
deliver(struct rig *rig, struct pubsub *pubsub, struct notice_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->posts[i].loop == 0) {
            pubsub_deliver(pubsub, 0, list->posts[i].notice, list->posts[i].to);
        }
    }
    push_flush(&rig->loop);
    notice_list_fini(list);
}

TEST(messages_are_written_in_the_receivers_protocol)
{
    struct rig *rig = rig_new();
    struct pubsub *pubsub = pubsub_new(1);
    struct notice_list list = { 0 };
    struct hearer two = hearer_new(rig, &resp2);
    struct hearer three = hearer_new(rig, &resp3);
    struct receiver *both[] = { &two.receiver, &three.receiver };

    for (unsigned i = 0; i < 2; i++) {
        (void)subscribe(pubsub, both[i], PUBSUB_CHANNEL, "c");
        (void)subscribe(pubsub, both[i], PUBSUB_PATTERN, "?");
        (void)subscribe(pubsub, both[i], PUBSUB_SHARD, "c");
    }
    assert_int_equal(4, publish(pubsub, "c", &list));
    (void)pubsub_publish(pubsub, NOTICE_SHARD_MESSAGE, 0, slice_lit("c"),
                         slice_lit("s"), &list);
    deliver(rig, pubsub, &list);
    peer_expect(rig, &two.peer,
                "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n"
                "*4\r\n$8\r\npmessage\r\n$1\r\n?\r\n$1\r\nc\r\n$1\r\nm\r\n"
                "*3\r\n$8\r\nsmessage\r\n$1\r\nc\r\n$1\r\ns\r\n");
    peer_expect(rig, &three.peer,
                ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n"
                ">4\r\n$8\r\npmessage\r\n$1\r\n?\r\n$1\r\nc\r\n$1\r\nm\r\n"
                ">3\r\n$8\r\nsmessage\r\n$1\r\nc\r\n$1\r\ns\r\n");
    pubsub_leave(pubsub, &two.receiver);
    pubsub_leave(pubsub, &three.receiver);
    peer_free(&two.peer);
    peer_free(&three.peer);
    pubsub_free(pubsub);
    rig_free(rig);
}

TEST(only_what_is_published_after_a_subscription_is_heard)
{
    struct rig *rig = rig_new();
    struct pubsub *pubsub = pubsub_new(1);
    struct notice_list list = { 0 };
    struct hearer early = hearer_new(rig, &resp3);
    struct hearer late = hearer_new(rig, &resp3);

    (void)subscribe(pubsub, &early.receiver, PUBSUB_CHANNEL, "c");
    assert_int_equal(1, publish(pubsub, "c", &list));
    (void)subscribe(pubsub, &late.receiver, PUBSUB_CHANNEL, "c");
    deliver(rig, pubsub, &list);
    peer_expect(rig, &early.peer,
                ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n");
    rig_settle(rig);
    assert_false(peer_has(&late.peer, 1));
    assert_int_equal(2, publish(pubsub, "c", &list));
    deliver(rig, pubsub, &list);
    peer_expect(rig, &late.peer,
                ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n");
    pubsub_leave(pubsub, &early.receiver);
    pubsub_leave(pubsub, &late.receiver);
    peer_free(&early.peer);
    peer_free(&late.peer);
    pubsub_free(pubsub);
    rig_free(rig);
}

TEST(who_has_left_hears_nothing_and_a_cut_takes_all_who_subscribe)
{
    struct rig *rig = rig_new();
    struct pubsub *pubsub = pubsub_new(1);
    struct notice_list list = { 0 };
    struct hearer gone = hearer_new(rig, &resp3);
    struct hearer stays = hearer_new(rig, &resp3);

    (void)subscribe(pubsub, &gone.receiver, PUBSUB_CHANNEL, "c");
    (void)subscribe(pubsub, &stays.receiver, PUBSUB_PATTERN, "*");
    (void)publish(pubsub, "c", &list);
    pubsub_leave(pubsub, &gone.receiver);
    deliver(rig, pubsub, &list);
    rig_until(rig, peer_has(&stays.peer, 1));
    assert_false(peer_has(&gone.peer, 1));
    pubsub_cut(pubsub, 0);
    assert_true(stays.receiver.conn->closing);
    assert_false(gone.receiver.conn->closing);
    pubsub_leave(pubsub, &stays.receiver);
    peer_free(&gone.peer);
    peer_free(&stays.peer);
    pubsub_free(pubsub);
    rig_free(rig);
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
