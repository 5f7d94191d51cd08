/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who is told of a message.
 */
#include "pubsub_help.h"

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
