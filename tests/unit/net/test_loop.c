/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Wake-ups: they cost nothing while nothing waits, and may come late.
 * test_loop_run.c has many of them from another thread.
 */
#include "net/loop.h"

#include "rig.h"

#include <poll.h>

TEST(a_wake_up_costs_nothing_while_nobody_waits)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct pollfd events = { .fd = uv_backend_fd(&rig->loop.uv),
                             .events = POLLIN };

    rig_settle(rig);
    loop_wake(&rig->loop);
    assert_int_equal(0, poll(&events, 1, 0)); /* the loop has nothing to do */
    rig->released = 0;
    peer_send_text(rig, &peer, "HOLD 1\r\n");
    rig_until(rig, rig->last->held_bytes > 0);
    assert_true(rig->loop.waiting);
    rig->released = 1;
    assert_int_equal(0, poll(&events, 1, 0));
    loop_wake(&rig->loop);
    assert_int_equal(1, poll(&events, 1, 0));
    peer_expect(rig, &peer, "+HOLD|1\r\n");
    assert_false(rig->loop.waiting);
    peer_free(&peer);
    rig_free(rig);
}

/* Whoever moves the position learns of the end later than the loop. */
TEST(a_loop_that_has_ended_may_be_woken_until_it_is_freed)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);

    rig->released = 0;
    peer_send_text(rig, &peer, "HOLD 1\r\n");
    rig_until(rig, rig->last->held_bytes > 0);
    loop_stop(&rig->loop);
    loop_wake(&rig->loop);
    loop_run(&rig->loop);
    loop_wake(&rig->loop);
    loop_fini(&rig->loop);
    loop_init(&rig->loop, 0, &rig->env, rig);
    peer_free(&peer);
    rig_free(rig);
}
