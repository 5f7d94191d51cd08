/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One replica: its memory while it is slow, when it is dropped, and when it
 * gets pings.
 */
#include "repl/peer.h"

#include "../test.h"
#include "primary_rig.h"

/* ---- how much ------------------------------------------------------------ */

TEST(a_link_gets_about_a_mebibyte_more_than_its_socket_takes)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    rig.links[1].stuck = true;
    for (int i = 0; i < 50; i++) {
        rig_publish(&rig, 100000);
    }
    assert_in_range(rig.links[1].unsent, 1 << 20, (1 << 20) + (64 << 10));
    rig.links[1].unsent = 1000;
    primary_drained(rig.primary, 1, rig.now);
    assert_in_range(rig.links[1].unsent, 1 << 20, (1 << 20) + (65 << 10));
    assert_int_equal(rig.links[1].drops, 0);
    rig_unstick(&rig, 1);
    while (rig_stream(&rig)) {
    }
    assert_memory_equal(rig_received(&rig, 1), "+CONTINUE 1 2 3", 15);
    assert_int_equal(rig.links[1].described, rig.links[1].sent.len);
    assert_int_equal(rig_shown(&rig, 1).unsent_bytes, 0);
    rig_end(&rig);
}

TEST(a_replica_that_leaves_more_than_the_hard_limit_is_dropped)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    rig_follow(&rig, 2);
    rig.links[1].stuck = true;
    for (int i = 0; rig.links[1].drops == 0; i++) {
        assert_in_range(rig.position - RIG_START, 0, 8 << 20);
        assert_true(i < 100);
        rig_publish(&rig, 100000);
    }
    assert_memory_equal(rig.links[1].reason, "it has not taken 8", 18);
    assert_non_null(strstr(rig.links[1].reason, "the hard output limit"));
    assert_int_equal(rig.links[2].drops, 0);
    assert_true(backlog_bytes(rig.backlog) < 9 << 20);
    rig_end(&rig);
}

TEST(above_the_soft_limit_a_replica_may_stay_for_its_time)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    rig.links[1].stuck = true;
    rig_publish(&rig, (6 << 20) + 1000);
    rig_pass(&rig, 4900, 0);
    assert_int_equal(rig.links[1].drops, 0);
    rig.links[1].unsent = 0; /* it reads: the time begins anew */
    primary_drained(rig.primary, 1, rig.now);
    rig_pass(&rig, 10000, 0);
    assert_int_equal(rig.links[1].drops, 0);
    rig_publish(&rig, 2 << 20);
    rig_pass(&rig, 4900, 0);
    assert_int_equal(rig.links[1].drops, 0);
    rig_pass(&rig, 100, 0);
    assert_int_equal(rig.links[1].drops, 1);
    assert_non_null(strstr(rig.links[1].reason, "the soft output limit"));
    rig_end(&rig);
}

TEST(limits_of_zero_are_none_and_small_ones_leave_the_backlog)
{
    struct rig rig;

    rig_begin(&rig);
    rig.limits.hard_bytes = rig.limits.soft_bytes = 0;
    primary_set_limits(rig.primary, &rig.limits);
    rig_follow(&rig, 1);
    rig.links[1].stuck = true;
    rig_publish(&rig, 20 << 20);
    rig_pass(&rig, 10000, 0);
    assert_int_equal(rig.links[1].drops, 0);

    rig.limits.hard_bytes = 1000;
    rig.limits.backlog_bytes = 32 << 20;
    primary_set_limits(rig.primary, &rig.limits);
    (void)rig_stream(&rig);
    assert_int_equal(rig.links[1].drops, 0);
    rig.limits.backlog_bytes = 1 << 20;
    primary_set_limits(rig.primary, &rig.limits);
    (void)rig_stream(&rig);
    assert_int_equal(rig.links[1].drops, 1);
    rig_end(&rig);
}

TEST(a_send_that_fails_drops_the_replica)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    rig_follow(&rig, 2);
    rig_write(&rig, 10);
    rig.links[1].fails = true;
    (void)rig_stream(&rig);
    assert_string_equal(rig.links[1].reason,
                        "there was no memory for its output");
    assert_string_equal(rig_received(&rig, 2), "+CONTINUE 1");
    rig_end(&rig);
}

/* ---- how long ------------------------------------------------------------ */

TEST(a_replica_that_is_silent_for_the_time_out_is_dropped)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    rig_follow(&rig, 2);
    rig_pass(&rig, 60000, 1 << 2);
    assert_int_equal(rig.links[1].drops, 0);
    rig_pass(&rig, 100, 1 << 2);
    assert_int_equal(rig.links[1].drops, 1);
    assert_string_equal(rig.links[1].reason,
                        "it has acknowledged nothing for 60100 ms");
    rig_pass(&rig, 100000, 1 << 2);
    assert_int_equal(rig.links[2].drops, 0);
    rig_end(&rig);
}

TEST(one_that_waits_is_given_up_only_if_its_socket_takes_nothing)
{
    struct rig rig;

    rig_begin(&rig);
    rig.limits.sync_delay_ms = 1000000000;
    primary_set_limits(rig.primary, &rig.limits);
    assert_true(rig_attach(&rig, 1, 1, NULL, 0));
    assert_true(rig_attach(&rig, 2, 2, NULL, 0));
    rig_pass(&rig, 100000, 0);
    assert_int_equal(primary_replicas(rig.primary), 2);
    rig.links[1].stuck = true;
    rig_pass(&rig, 69000, 0); /* a ping in the first 10 seconds gets stuck */
    assert_int_equal(rig.links[1].drops, 0);
    rig_pass(&rig, 2000, 0);
    assert_int_equal(rig.links[1].drops, 1);
    assert_memory_equal(rig.links[1].reason,
                        "it has taken and said nothing for 60", 36);
    assert_int_equal(rig.links[2].drops, 0);
    rig_end(&rig);
}

/* ---- pings --------------------------------------------------------------- */

TEST(a_silent_link_is_pinged_and_a_busy_one_is_not)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    rig_pass(&rig, 9900, 2);
    assert_string_equal(rig_received(&rig, 1), "+CONTINUE");
    rig_pass(&rig, 100, 2);
    assert_string_equal(rig_received(&rig, 1), "+PING");
    rig_pass(&rig, 9900, 2);
    assert_string_equal(rig_received(&rig, 1), "");
    rig_publish(&rig, 10);
    rig_pass(&rig, 9900, 2);
    assert_string_equal(rig_received(&rig, 1), "1");
    rig_pass(&rig, 10100, 2);
    assert_string_equal(rig_received(&rig, 1), "+PING +PING");
    rig_end(&rig);
}

TEST(no_ping_stands_inside_a_group)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    rig.links[1].stuck = true;
    rig_publish(&rig, 2 << 20);
    rig.links[1].unsent = 1 << 20; /* without a drained event */
    rig_pass(&rig, 30000, 0);
    rig_unstick(&rig, 1);
    primary_drained(rig.primary, 1, rig.now);
    primary_drained(rig.primary, 1, rig.now);
    assert_string_equal(rig_received(&rig, 1), "+CONTINUE 1");
    rig_pass(&rig, 10000, 0);
    assert_string_equal(rig_received(&rig, 1), "+PING");
    rig_end(&rig);
}

/* After a fault of our disk no more is released, while half of a group was
 * sent. */
TEST(no_line_stands_inside_a_group_that_cannot_go_on)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    rig.links[1].stuck = true;
    rig_publish(&rig, 2 << 20);
    rig.released = RIG_START;
    (void)rig_stream(&rig);
    rig_unstick(&rig, 1);
    primary_drained(rig.primary, 1, rig.now);
    rig_ask(&rig, rig.position);
    rig_pass(&rig, 20000, 0);
    assert_string_equal(rig_received(&rig, 1), "+CONTINUE...");
    rig.released = UINT64_MAX;
    while (rig_stream(&rig)) {
    }
    assert_string_equal(rig_received(&rig, 1), "1 +GETACK");
    rig_end(&rig);
}

/* ---- holdings ------------------------------------------------------------ */

static void
tell(struct rig *rig, const char *words, uint64_t position)
{
    struct buf text = { 0 };

    buf_append_slice(&text, slice_of(words));
    primary_tell(rig->primary, &text, position, rig->now);
    assert_int_equal(text.len, 0);
}

static void
follow_asking(struct rig *rig, uint64_t id)
{
    const struct primary_hello hello = { .id = id,
                                         .run_id = "asking",
                                         .history = RIG_HISTORY,
                                         .position = rig->position,
                                         .wants_holdings = true };

    assert_true(primary_attach(rig->primary, &hello, rig->now));
}

TEST(holdings_stand_right_behind_their_data_for_who_asked)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1); /* as a replica of 1.0.0 does */
    follow_asking(&rig, 2);
    tell(&rig, "one", rig.position);
    assert_string_equal(rig_received(&rig, 2), "+CONTINUE {one}");
    rig_write(&rig, 10);
    tell(&rig, "two", rig.position);
    assert_string_equal(rig_received(&rig, 2), "");
    rig_publish(&rig, 10);
    assert_string_equal(rig_received(&rig, 2), "1 2 {two}");
    tell(&rig, "two", rig.position); /* it knows that */
    rig_publish(&rig, 10);
    assert_string_equal(rig_received(&rig, 2), "3");
    follow_asking(&rig, 3); /* drops the older link of this server */
    assert_string_equal(rig_received(&rig, 3), "+CONTINUE {two}");
    assert_string_equal(rig_received(&rig, 1), "+CONTINUE 1 2 3");
    rig_end(&rig);
}

TEST(no_holdings_stand_inside_a_group)
{
    struct rig rig;

    rig_begin(&rig);
    follow_asking(&rig, 1);
    rig.links[1].stuck = true;
    rig_publish(&rig, 2 << 20);
    tell(&rig, "one", RIG_START);
    rig_unstick(&rig, 1);
    primary_drained(rig.primary, 1, rig.now);
    primary_drained(rig.primary, 1, rig.now);
    assert_string_equal(rig_received(&rig, 1), "+CONTINUE 1 {one}");
    rig_end(&rig);
}

TEST(a_new_replica_hears_of_holdings_behind_its_snapshot)
{
    const struct primary_hello hello = { .id = 1,
                                         .run_id = "asking",
                                         .wants_holdings = true };
    struct rig rig;

    rig_begin(&rig);
    tell(&rig, "one", rig.position);
    assert_true(primary_attach(rig.primary, &hello, rig.now));
    rig_pass(&rig, 1000, 0);
    rig_sync_begins(&rig);
    tell(&rig, "two", rig.position);
    rig_send_snapshot(&rig, 3);
    primary_sync_reached(rig.primary, rig.position);
    primary_sync_ended(rig.primary, true, rig.now);
    assert_string_equal(rig_received(&rig, 1),
                        "+PING +FULLRESYNC (3) end {two}");
    rig_end(&rig);
}
