/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What arrives on a loop.
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
