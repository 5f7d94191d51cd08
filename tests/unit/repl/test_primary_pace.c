/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When a snapshot pauses, resumes, and is cancelled.
 */
#include "repl/primary_pace.h"

#include "../test.h"
#include "primary_rig.h"

TEST(a_snapshot_goes_at_the_pace_of_the_fastest)
{
    struct rig rig;

    rig_begin(&rig);
    rig.limits.hard_bytes = rig.limits.soft_bytes = 0;
    primary_set_limits(rig.primary, &rig.limits);
    rig_begin_snapshot(&rig, 2);
    rig.links[1].stuck = rig.links[2].stuck = true;
    rig_send_snapshot(&rig, 4 << 20);
    rig.links[1].unsent = 100;
    rig_send_snapshot(&rig, 4 << 20); /* 8 MiB wait for link 2 */
    rig.links[1].unsent = 100;
    primary_drained(rig.primary, 1, rig.now);
    assert_false(rig.paused);
    rig_send_snapshot(&rig, 5 << 20);
    assert_true(rig.paused);
    rig.links[1].unsent = 2 << 20;
    primary_drained(rig.primary, 1, rig.now);
    assert_true(rig.paused);
    rig.links[1].unsent = 1 << 20;
    primary_drained(rig.primary, 1, rig.now);
    assert_false(rig.paused);
    rig_send_snapshot(&rig, 5 << 20);
    assert_true(rig.paused);
    rig.links[2].unsent = 0; /* now the other one is faster */
    rig_pass(&rig, 100, 0);
    assert_false(rig.paused);
    rig_send_snapshot(&rig, 5 << 20);
    assert_true(rig.paused);
    rig.links[2].unsent = 5 << 20;
    rig.links[1].unsent = 6 << 20;
    primary_detached(rig.primary, 2);
    assert_true(rig.paused); /* the slower one is alone now */
    rig_end(&rig);
}

TEST(the_slow_are_cut_and_the_fast_go_on)
{
    struct rig rig;

    rig_begin(&rig);
    rig_begin_snapshot(&rig, 2);
    rig.links[2].stuck = true;
    for (int i = 0; i < 9; i++) {
        rig_send_snapshot(&rig, 1 << 20);
    }
    assert_int_equal(rig.links[2].drops, 1);
    assert_non_null(strstr(rig.links[2].reason, "hard output limit"));
    assert_false(rig.paused);
    assert_int_equal(rig.cancelled, 0);
    primary_sync_ended(rig.primary, true, rig.now);
    (void)rig_received(&rig, 1);
    assert_int_equal(rig.links[1].described, rig.links[1].sent.len);
    assert_int_equal(primary_replicas(rig.primary), 1);
    rig_end(&rig);
}

TEST(small_limits_make_it_pause_before_they_cut)
{
    struct rig rig;

    rig_begin(&rig);
    rig.limits.hard_bytes = 1 << 20;
    primary_set_limits(rig.primary, &rig.limits);
    rig_begin_snapshot(&rig, 1);
    rig.links[1].stuck = true;
    for (int i = 0; i < 100 && !rig.paused; i++) {
        rig_send_snapshot(&rig, 64 << 10);
    }
    assert_true(rig.paused);
    assert_int_equal(rig.links[1].drops, 0);
    rig_end(&rig);
}

TEST(a_snapshot_that_nobody_wants_any_more_is_cancelled)
{
    struct rig rig;

    rig_begin(&rig);
    assert_true(rig_attach(&rig, 1, 1, NULL, 0));
    primary_detached(rig.primary, 1);
    assert_int_equal(rig.cancelled, 0); /* not asked for yet */
    assert_true(rig_attach(&rig, 1, 1, NULL, 0));
    rig_pass(&rig, 1000, 0);
    primary_detached(rig.primary, 1);
    assert_int_equal(rig.cancelled, 1);
    assert_true(rig_attach(&rig, 4, 4, NULL, 0));
    rig_sync_begins(&rig); /* too late: nothing happens */
    rig_send_snapshot(&rig, 10);
    assert_string_equal(rig_received(&rig, 4), "+PING");
    primary_sync_ended(rig.primary, true, rig.now);
    assert_int_equal(rig.cancelled, 1);
    primary_detached(rig.primary, 4);

    rig.asked = 0;
    rig.links[1].sent.len = rig.links[1].described = 0;
    rig_begin_snapshot(&rig, 2);
    assert_true(primary_drop(rig.primary, 1, "x"));
    assert_int_equal(rig.cancelled, 1);
    assert_true(primary_drop(rig.primary, 2, "x"));
    assert_int_equal(rig.cancelled, 2);
    assert_true(rig_attach(&rig, 3, 3, NULL, 0)); /* and anew */
    rig_pass(&rig, 1000, 0);
    assert_int_equal(rig.asked, 2);
    rig_end(&rig);
}

/* Others wait for other keys, and must not wait for it. */
TEST(a_snapshot_of_slots_that_nobody_wants_any_more_is_cancelled)
{
    struct rig rig;

    rig_begin(&rig);
    rig_write(&rig, 10);
    assert_true(rig_pull(&rig, 1, 1, "5-9"));
    assert_true(rig_pull(&rig, 2, 2, "7"));
    assert_true(rig_attach(&rig, 3, 3, NULL, 0));
    rig_pass(&rig, 2000, 0);
    assert_int_equal(rig.asked, 1);
    primary_detached(rig.primary, 1);
    rig_pass(&rig, 200, 0);
    assert_int_equal(slot_set_count(&rig.asked_slots), 1);
    primary_detached(rig.primary, 2);
    assert_int_equal(rig.cancelled, 2);
    rig_pass(&rig, 200, 0);
    assert_true(slot_set_is_empty(&rig.asked_slots));
    rig_sync_begins(&rig);
    rig_send_snapshot(&rig, 10);
    assert_false(rig.paused);
    primary_sync_ended(rig.primary, true, rig.now);
    assert_non_null(strstr(rig_received(&rig, 3), "(10) end"));
    rig_end(&rig);
}
