/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Delivery of messages on a loop, whole and in pieces.
 */
#include "pubsub_help.h"

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
    (void)publish_as(pubsub, NOTICE_SHARD_MESSAGE, slice_lit("c"),
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

TEST(a_subscription_gets_only_later_messages)
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

TEST(a_client_that_left_gets_nothing_and_a_loss_cuts_all_subscribers)
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
    pubsub_deliver_lost(pubsub, 0);
    assert_true(conn_is_closing(stays.receiver.conn));
    assert_false(conn_is_closing(gone.receiver.conn));
    pubsub_leave(pubsub, &stays.receiver);
    peer_free(&gone.peer);
    peer_free(&stays.peer);
    pubsub_free(pubsub);
    rig_free(rig);
}

/* ---- in pieces ------------------------------------------------------------
 */

enum { MANY = 300 };

/* Patterns that all match, and one receiver for each. */
struct crowd {
    struct rig *rig;
    struct pubsub *pubsub;
    struct hearer hearer; /* of the last pattern and the channel */
    struct receiver receivers[MANY];
    struct notice_list list;
};

static void
pattern_of(unsigned i, char ret_pattern[16])
{
    (void)snprintf(ret_pattern, 16, "c[^%u]*", i);
}

static struct crowd *
crowd_new(void)
{
    struct crowd *crowd = mem_zalloc(sizeof(*crowd));
    char pattern[16];

    crowd->rig = rig_new();
    crowd->pubsub = pubsub_new(1);
    crowd->hearer = hearer_new(crowd->rig, &resp3);
    for (unsigned i = 0; i < MANY; i++) {
        crowd->receivers[i] = crowd->hearer.receiver;
        crowd->receivers[i].subscriptions = NULL;
        pattern_of(i, pattern);
        assert_int_equal(PUBSUB_OK,
                         subscribe(crowd->pubsub, &crowd->receivers[i],
                                   PUBSUB_PATTERN, pattern));
        (void)subscribe(crowd->pubsub, &crowd->receivers[i], PUBSUB_CHANNEL,
                        "cx");
    }
    assert_int_equal(2 * MANY, publish(crowd->pubsub, "cx", &crowd->list));
    return crowd;
}

static void
crowd_free(struct crowd *crowd)
{
    (void)push_flush(&crowd->rig->loop, UINT64_MAX);
    rig_settle(crowd->rig);
    for (unsigned i = 0; i < MANY; i++) {
        pubsub_leave(crowd->pubsub, &crowd->receivers[i]);
    }
    notice_list_fini(&crowd->list);
    peer_free(&crowd->hearer.peer);
    pubsub_free(crowd->pubsub);
    rig_free(crowd->rig);
    mem_free(crowd);
}

/* Delivers one piece, since the time is over; true if it was the last. */
static bool
deliver_piece(struct crowd *crowd)
{
    return pubsub_deliver(crowd->pubsub, 0, crowd->list.posts[0].notice,
                          crowd->list.posts[0].to, 0);
}

/* Counts the messages that the one connection behind all receivers got. */
static unsigned
messages(struct crowd *crowd)
{
    const struct buf *got = &crowd->hearer.peer.got;
    unsigned count = 0;

    (void)push_flush(&crowd->rig->loop, UINT64_MAX);
    rig_settle(crowd->rig);
    (void)peer_has(&crowd->hearer.peer, 0);
    for (size_t i = 0; i < got->len; i++) {
        count += got->data[i] == '>';
    }
    return count;
}

TEST(a_message_for_many_is_delivered_in_pieces)
{
    struct crowd *crowd = crowd_new();
    unsigned pieces = 1;

    while (!deliver_piece(crowd)) {
        pieces++;
    }
    assert_true(pieces >= 2 * MANY / 40 && pieces <= 2 * MANY);
    assert_int_equal(2 * MANY, messages(crowd));
    /* The next message starts from the beginning. */
    assert_false(deliver_piece(crowd));
    crowd_free(crowd);
}

/* A client that leaves between two pieces gets nothing more, a new one gets
 * nothing, and every other one gets the message once. */
TEST(subscriptions_may_come_and_go_between_two_pieces)
{
    struct crowd *crowd = crowd_new();
    struct receiver late = crowd->hearer.receiver;
    unsigned gone = 0;

    for (unsigned at = 0; !deliver_piece(crowd); at += 2) {
        /* From the end, where nothing was delivered yet, and from the front,
         * where the piece is. */
        pubsub_leave(crowd->pubsub, &crowd->receivers[MANY - 1 - at]);
        pubsub_leave(crowd->pubsub, &crowd->receivers[at]);
        gone += 2;
        (void)subscribe(crowd->pubsub, &late, PUBSUB_PATTERN, "*");
        (void)subscribe(crowd->pubsub, &late, PUBSUB_CHANNEL, "cx");
    }
    assert_true(gone >= 10);
    assert_in_range(messages(crowd), 2 * (MANY - gone), 2 * MANY);
    pubsub_leave(crowd->pubsub, &late);
    crowd_free(crowd);
}

TEST(all_may_leave_between_two_pieces)
{
    struct crowd *crowd = crowd_new();

    assert_false(deliver_piece(crowd));
    for (unsigned i = 0; i < MANY; i++) {
        pubsub_leave(crowd->pubsub, &crowd->receivers[i]);
    }
    assert_true(deliver_piece(crowd));
    assert_in_range(messages(crowd), 1, 40);
    crowd_free(crowd);
}

TEST(a_loss_between_two_pieces_ends_the_message)
{
    struct crowd *crowd = crowd_new();

    assert_false(deliver_piece(crowd));
    pubsub_deliver_lost(crowd->pubsub, 0);
    assert_true(conn_is_closing(crowd->hearer.receiver.conn));
    while (!deliver_piece(crowd)) { /* again, without receivers */
    }
    crowd_free(crowd);
}

/* The limit of channels was raised after the subscription, so that matching the
 * pattern is too much work: its client is cut. */
TEST(a_pattern_that_is_too_much_work_cuts_its_client)
{
    enum { LONG = 1 << 20 };
    struct rig *rig = rig_new();
    struct pubsub *pubsub = pubsub_new(1);
    struct notice_list list = { 0 };
    struct hearer slow = hearer_new(rig, &resp3);
    struct hearer other = hearer_new(rig, &resp3);
    char *channel = mem_alloc(LONG);

    memset(channel, 'a', LONG);
    (void)subscribe(pubsub, &slow.receiver, PUBSUB_PATTERN, "*aaaaaa?b*");
    (void)subscribe(pubsub, &other.receiver, PUBSUB_PATTERN, "b*");
    assert_int_equal(0, publish_as(pubsub, NOTICE_MESSAGE,
                                   (struct slice){ channel, LONG },
                                   slice_lit("m"), &list));
    assert_int_equal(1, list.count);
    deliver(rig, pubsub, &list);
    assert_true(conn_is_closing(slow.receiver.conn));
    assert_false(conn_is_closing(other.receiver.conn));
    pubsub_leave(pubsub, &slow.receiver);
    pubsub_leave(pubsub, &other.receiver);
    peer_free(&slow.peer);
    peer_free(&other.peer);
    mem_free(channel);
    pubsub_free(pubsub);
    rig_free(rig);
}
