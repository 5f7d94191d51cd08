/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/fence_order.h"

#include "../test.h"
#include "base/mem.h"
#include "cluster_rig.h"

TEST(an_order_has_copies_of_its_question_and_two_users)
{
    struct slot_set set = { .bits[3] = 5 };
    char node[] = RIG_B;
    const struct sidecar_ask ask = {
        .question = SIDECAR_ASK_FENCE, .node = node, .set = &set, .epoch = 9
    };
    struct fence_order *order = fence_order_new(&ask);

    node[0] = 'x';
    set.bits[3] = 0;
    assert_string_equal(order->ask.node, RIG_B);
    assert_int_equal(order->ask.set->bits[3], 5);
    assert_int_equal(order->ask.epoch, 9);
    fence_order_drop(order);
    assert_int_equal(order->ask.epoch, 9); /* the other user has it */
    fence_order_drop(order);
    fence_order_drop(NULL);
}
