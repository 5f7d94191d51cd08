/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A receiver on a connection, and one without.
 */
#include "push/receiver.h"

#include "../net/rig.h"
#include "net/push.h"

TEST(a_push_arrives_and_its_bytes_stay_the_callers)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct receiver receiver = { .conn = rig->last };
    struct buf bytes = { 0 };

    buf_append(&bytes, "abc", 3);
    receiver_push(&receiver, &bytes, 0);
    receiver_push(&receiver, &bytes, 0);
    (void)push_flush(&rig->loop, UINT64_MAX);
    assert_int_equal(3, bytes.len);
    peer_expect(rig, &peer, "abcabc");
    buf_free(&bytes);
    peer_free(&peer);
    rig_free(rig);
}

TEST(without_memory_for_a_message_its_receiver_is_cut)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct receiver receiver = { .conn = rig->last };
    struct buf bytes = { .failed = true };

    receiver_push(&receiver, &bytes, 0);
    assert_true(conn_is_closing(rig->last));
    receiver_cut(&receiver);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_receiver_without_a_connection_gets_nothing)
{
    struct receiver receiver = { .conn = NULL };
    struct buf bytes = { 0 };

    buf_append(&bytes, "abc", 3);
    receiver_push(&receiver, &bytes, 0);
    bytes.failed = true;
    receiver_push(&receiver, &bytes, 0);
    receiver_cut(&receiver);
    buf_free(&bytes);
}

TEST(a_subscription_of_any_kind_counts)
{
    for (unsigned i = 0; i < PUBSUB_KINDS; i++) {
        struct receiver receiver = { .conn = NULL };

        assert_false(receiver_subscribes(&receiver));
        receiver.subscribed[i] = 1;
        assert_true(receiver_subscribes(&receiver));
    }
}
