/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One snapshot for all replicas that wait: when it is asked for, which replicas
 * get it, and what happens when it fails or no replica is left.
 */
#include "repl/primary_sync.h"

#include "../test.h"
#include "primary_rig.h"

TEST(a_full_synchronization_is_a_snapshot_and_the_log_behind_it)
{
    struct rig rig;

    rig_begin(&rig);
    rig_write(&rig, 10);
    rig_begin_snapshot(&rig, 1);
    rig_publish(&rig, 10);
    rig_send_snapshot(&rig, 100);
    rig_send_snapshot(&rig, (2 << 20) + 1);
    assert_string_equal(rig_received(&rig, 1), "(100) (1048576) (1048576) (1)");
    rig_publish(&rig, 10);
    assert_string_equal(rig_received(&rig, 1), "");
    primary_sync_ended(rig.primary, true, rig.now);
    assert_string_equal(rig_received(&rig, 1), "end 2 3");
    rig_publish(&rig, 10);
    assert_string_equal(rig_received(&rig, 1), "4");
    assert_int_equal(rig_shown(&rig, 1).state, STATUS_SYNCS);
    assert_int_equal(rig_shown(&rig, 1).acked, 0);
    primary_acked(rig.primary, 1, rig.position, 0, rig.now);
    assert_int_equal(rig_shown(&rig, 1).state, STATUS_ONLINE);
    assert_int_equal(rig_shown(&rig, 1).acked, rig.position);
    assert_int_equal(rig.acked, 1);
    assert_int_equal(rig.cancelled, 0);
    rig_end(&rig);
}

TEST(the_answer_says_what_the_snapshot_is)
{
    struct primary_sync sync = { .position = RIG_START + 9,
                                 .sequence = 5,
                                 .bytes = 77,
                                 .history = RIG_OTHER };
    struct wire_answer answer;
    struct rig rig;
    char reason[100];
    size_t before;

    rig_begin(&rig);
    assert_true(rig_attach(&rig, 1, 1, NULL, 0));
    rig_pass(&rig, 1000, 0);
    before = rig.links[1].sent.len;
    primary_sync_began(rig.primary, &sync, rig.now);
    assert_true(
        wire_parse_answer((struct slice){ rig.links[1].sent.data + before,
                                          rig.links[1].sent.len - before - 2 },
                          &answer, reason, sizeof(reason)));
    assert_int_equal(answer.kind, WIRE_FULLRESYNC);
    assert_string_equal(answer.history, RIG_OTHER);
    assert_int_equal(answer.key, LOG_KEY);
    assert_int_equal(answer.position, RIG_START + 9);
    assert_int_equal(answer.sequence, 5);
    assert_int_equal(answer.bytes, 77);
    rig_end(&rig);
}

TEST(the_first_who_waits_waits_for_others_and_no_longer_than_the_delay)
{
    struct rig rig;

    rig_begin(&rig);
    assert_true(rig_attach(&rig, 1, 1, NULL, 0));
    rig_pass(&rig, 600, 0);
    assert_true(rig_attach(&rig, 2, 2, NULL, 0));
    rig_pass(&rig, 300, 0);
    assert_int_equal(rig.asked, 0);
    rig_pass(&rig, 100, 0);
    assert_int_equal(rig.asked, 1);
    assert_true(rig_attach(&rig, 3, 3, NULL, 0)); /* still in time */
    rig_sync_begins(&rig);
    for (uint64_t id = 1; id <= 3; id++) {
        assert_string_equal(rig_received(&rig, id), "+PING +FULLRESYNC");
    }
    rig_pass(&rig, 5000, 0);
    assert_int_equal(rig.asked, 1);
    rig_end(&rig);
}

TEST(without_a_delay_a_snapshot_is_asked_for_at_once)
{
    struct rig rig;

    rig_begin(&rig);
    rig.limits.sync_delay_ms = 0;
    primary_set_limits(rig.primary, &rig.limits);
    assert_true(rig_attach(&rig, 1, 1, NULL, 0));
    assert_int_equal(rig.asked, 1);
    rig_end(&rig);
}

TEST(a_replica_that_comes_while_a_snapshot_runs_waits_for_the_next)
{
    struct rig rig;

    rig_begin(&rig);
    rig_begin_snapshot(&rig, 1);
    assert_true(rig_attach(&rig, 2, 2, NULL, 0));
    rig_pass(&rig, 3000, 0);
    rig_send_snapshot(&rig, 10);
    assert_string_equal(rig_received(&rig, 2), "+PING");
    assert_int_equal(rig.asked, 1);
    primary_sync_ended(rig.primary, true, rig.now);
    assert_string_equal(rig_received(&rig, 1), "(10) end");
    assert_string_equal(rig_received(&rig, 2), "");
    rig_pass(&rig, 100, 0);
    assert_int_equal(rig.asked, 2);
    rig_sync_begins(&rig);
    assert_string_equal(rig_received(&rig, 2), "+FULLRESYNC");
    rig_send_snapshot(&rig, 10);
    assert_string_equal(rig_received(&rig, 1), "");
    rig_end(&rig);
}

/* From its position on the log is kept, and none before it. */
TEST(the_log_since_the_snapshot_is_kept_however_much_it_is)
{
    struct rig rig;

    rig_begin(&rig);
    rig.limits.hard_bytes = rig.limits.soft_bytes = 0;
    primary_set_limits(rig.primary, &rig.limits);
    assert_true(rig_attach(&rig, 1, 1, NULL, 0));
    rig_pass(&rig, 1000, 0);
    for (int i = 0; i < 20; i++) {
        struct primary_sync sync = { .position = RIG_START };

        if (i == 5) {
            primary_sync_began(rig.primary, &sync, rig.now);
        } else if (i == 10) {
            assert_true(backlog_first(rig.backlog) > RIG_START);
            primary_sync_reached(rig.primary, rig.position);
        }
        rig_publish(&rig, 100000);
    }
    primary_sync_ended(rig.primary, true, rig.now);
    while (rig_stream(&rig)) {
    }
    assert_string_equal(rig_received(&rig, 1),
                        "+PING +FULLRESYNC end 11 12 13 14 15 16 17 18 19 20");
    rig_end(&rig);
}

TEST(one_that_is_waited_for_keeps_nothing_of_the_log)
{
    struct rig rig;

    rig_begin(&rig);
    assert_true(rig_attach(&rig, 1, 1, NULL, 0));
    rig_pass(&rig, 1000, 0);
    assert_int_equal(rig.asked, 1);
    for (int i = 0; i < 40; i++) {
        rig_publish(&rig, 100000);
    }
    assert_true(backlog_bytes(rig.backlog) < 1 << 20);
    rig_sync_begins(&rig);
    primary_sync_ended(rig.primary, true, rig.now);
    rig_publish(&rig, 100);
    assert_string_equal(rig_received(&rig, 1), "+PING +FULLRESYNC end 41");
    rig_end(&rig);
}

/* ---- ends ---------------------------------------------------------------- */

TEST(one_that_fails_drops_those_who_got_it)
{
    struct rig rig;

    rig_begin(&rig);
    rig_begin_snapshot(&rig, 2);
    assert_true(rig_attach(&rig, 3, 3, NULL, 0));
    rig_follow(&rig, 4);
    rig_send_snapshot(&rig, 10);
    primary_sync_ended(rig.primary, false, rig.now);
    assert_string_equal(rig.links[1].reason, "its snapshot could not be made");
    assert_int_equal(rig.links[2].drops, 1);
    assert_int_equal(rig.links[3].drops + rig.links[4].drops, 0);
    assert_int_equal(rig.cancelled, 0);
    rig_pass(&rig, 1000, 0);
    assert_int_equal(rig.asked, 2);
    primary_sync_ended(rig.primary, false, rig.now); /* not even begun */
    assert_int_equal(rig.links[3].drops, 1);
    assert_int_equal(rig.links[4].drops, 0);
    rig_pass(&rig, 5000, 0);
    assert_int_equal(rig.asked, 2);
    rig_end(&rig);
}

TEST(without_memory_for_a_chunk_they_are_dropped)
{
    struct rig rig;

    rig_begin(&rig);
    rig_begin_snapshot(&rig, 2);
    rig.links[1].fails = true;
    rig_send_snapshot(&rig, 3 << 20);
    assert_int_equal(rig.links[1].drops, 1);
    assert_int_equal(rig.links[2].drops, 0);
    rig.links[2].fails = true;
    rig_send_snapshot(&rig, 3 << 20);
    assert_int_equal(rig.links[2].drops, 1);
    assert_int_equal(rig.cancelled, 1);
    rig_end(&rig);
}

/* ---- while it loads ------------------------------------------------------ */

TEST(pings_stand_between_chunks_and_behind_the_end)
{
    struct rig rig;

    rig_begin(&rig);
    rig_begin_snapshot(&rig, 1);
    rig_send_snapshot(&rig, 10);
    rig_pass(&rig, 10000, 0);
    rig_send_snapshot(&rig, 10);
    primary_sync_ended(rig.primary, true, rig.now);
    rig_pass(&rig, 10000, 0);
    assert_string_equal(rig_received(&rig, 1), "(10) +PING (10) end +PING");
    rig_end(&rig);
}

TEST(one_that_loads_lives_as_long_as_it_says_so)
{
    struct rig rig;

    rig_begin(&rig);
    rig_write(&rig, 10);
    rig_begin_snapshot(&rig, 2);
    primary_sync_ended(rig.primary, true, rig.now);
    for (int i = 0; i < 59; i++) {
        primary_acked(rig.primary, 1, 0, 0, rig.now);
        rig_pass(&rig, 1000, 0);
    }
    assert_int_equal(primary_replicas(rig.primary), 2);
    assert_int_equal(rig_shown(&rig, 1).state, STATUS_SYNCS);
    assert_int_equal(rig_shown(&rig, 1).acked, 0);
    primary_acked(rig.primary, 1, 0, 0, rig.now);
    rig_pass(&rig, 2000, 0);
    assert_int_equal(rig.links[1].drops, 0);
    assert_int_equal(rig.links[2].drops, 1); /* it said nothing */
    assert_memory_equal(rig.links[2].reason,
                        "it has taken and said nothing for 60", 36);
    primary_acked(rig.primary, 1, rig.position, rig.position, rig.now);
    assert_int_equal(rig_shown(&rig, 1).state, STATUS_ONLINE);
    primary_acked(rig.primary, 1, 0, 0, rig.now); /* not any more */
    assert_int_equal(rig.links[1].drops, 1);
    rig_end(&rig);
}

TEST(one_that_was_silent_during_a_long_snapshot_has_time_to_load_it)
{
    struct rig rig;

    rig_begin(&rig);
    rig_begin_snapshot(&rig, 1);
    rig_pass(&rig, 100000, 0); /* it takes all that there is */
    primary_sync_ended(rig.primary, true, rig.now);
    rig_pass(&rig, 50000, 0);
    assert_int_equal(rig.links[1].drops, 0);
    rig_pass(&rig, 11000, 0);
    assert_int_equal(rig.links[1].drops, 1);
    rig_end(&rig);
}

TEST(one_that_takes_its_snapshot_slowly_lives)
{
    struct rig rig;

    rig_begin(&rig);
    rig_begin_snapshot(&rig, 2);
    rig.links[1].stuck = rig.links[2].stuck = true;
    rig_send_snapshot(&rig, 1 << 20);
    for (int i = 0; i < 59; i++) {
        rig.links[1].unsent--;
        rig_pass(&rig, 1000, 0);
    }
    assert_int_equal(primary_replicas(rig.primary), 2);
    rig.links[1].unsent--;
    rig_pass(&rig, 2000, 0);
    assert_int_equal(rig.links[1].drops, 0);
    assert_int_equal(rig.links[2].drops, 1);
    assert_int_equal(rig.cancelled, 0);
    rig_end(&rig);
}

TEST(what_is_acknowledged_during_a_snapshot_is_a_sign_of_life_only)
{
    struct rig rig;

    rig_begin(&rig);
    rig_write(&rig, 10);
    rig_begin_snapshot(&rig, 1);
    primary_acked(rig.primary, 1, UINT64_MAX, 0, rig.now);
    primary_sync_ended(rig.primary, true, rig.now);
    assert_int_equal(rig.links[1].drops, 0);
    assert_int_equal(rig.acked, 0);
    primary_acked(rig.primary, 1, rig.position + 1, 0, rig.now);
    assert_int_equal(rig.links[1].drops, 1);
    rig_end(&rig);
}

TEST(who_takes_slots_over_gets_a_snapshot_of_these_slots_at_once)
{
    struct rig rig;

    rig_begin(&rig);
    rig_write(&rig, 10);
    assert_true(rig_pull(&rig, 1, 1, "5-9"));
    assert_int_equal(rig.asked, 1);
    assert_int_equal(slot_set_count(&rig.asked_slots), 5);
    assert_true(rig_pull(&rig, 2, 2, "5-8"));
    assert_true(rig_pull(&rig, 3, 3, "5-9"));
    assert_true(rig_attach(&rig, 4, 4, NULL, 0));
    rig_pass(&rig, 10000, 0);
    assert_int_equal(rig.asked, 1);
    rig_sync_begins(&rig);
    rig_send_snapshot(&rig, 10);
    primary_sync_ended(rig.primary, true, rig.now);
    assert_non_null(strstr(rig_received(&rig, 1), "(10) end"));
    assert_null(strstr(rig_received(&rig, 2), "(10)"));
    assert_non_null(strstr(rig_received(&rig, 3), "(10) end"));
    assert_null(strstr(rig_received(&rig, 4), "(10)"));
    rig_pass(&rig, 200, 0);
    assert_int_equal(rig.asked, 2);
    assert_int_equal(slot_set_count(&rig.asked_slots), 4);
    rig_sync_begins(&rig);
    primary_sync_ended(rig.primary, true, rig.now);
    rig_pass(&rig, 200, 0);
    assert_int_equal(rig.asked, 3);
    assert_true(slot_set_is_empty(&rig.asked_slots));
    rig_end(&rig);
}

/* That of the replica may wait for the disk. */
TEST(who_takes_slots_over_comes_before_a_replica_whose_snapshot_has_not_begun)
{
    struct rig rig;

    rig_begin(&rig);
    rig_write(&rig, 10);
    assert_true(rig_attach(&rig, 1, 1, NULL, 0));
    rig_pass(&rig, 10000, 0);
    assert_int_equal(rig.asked, 1);
    assert_true(rig_pull(&rig, 2, 2, "5-9"));
    rig_pass(&rig, 200, 0);
    assert_int_equal(rig.asked, 2);
    assert_int_equal(slot_set_count(&rig.asked_slots), 5);
    rig_sync_begins(&rig);
    rig_send_snapshot(&rig, 10);
    primary_sync_ended(rig.primary, true, rig.now);
    assert_non_null(strstr(rig_received(&rig, 2), "(10) end"));
    assert_null(strstr(rig_received(&rig, 1), "(10)"));
    rig_pass(&rig, 200, 0);
    assert_int_equal(rig.asked, 3);
    assert_true(slot_set_is_empty(&rig.asked_slots));
    rig_end(&rig);
}

TEST(who_takes_slots_over_never_resumes_and_is_no_replica)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    /* The same server may be a replica and take slots over. */
    assert_true(rig_pull(&rig, 2, 1, "0-16383"));
    assert_int_equal(rig.links[1].drops, 0);
    rig_sync_begins(&rig);
    primary_sync_ended(rig.primary, true, rig.now);
    primary_acked(rig.primary, 2, rig.position, 0, rig.now);
    assert_int_equal(rig_shown(&rig, 2).state, STATUS_PULLS);
    assert_int_equal(rig_shown(&rig, 2).slots, 16384);
    assert_int_equal(rig_shown(&rig, 2).acked, rig.position);
    assert_int_equal(rig_shown(&rig, 1).state, STATUS_ONLINE);
    rig_end(&rig);
}

TEST(a_snapshot_that_fails_drops_only_those_that_wait_for_it)
{
    struct rig rig;

    rig_begin(&rig);
    assert_true(rig_pull(&rig, 1, 1, "7"));
    assert_true(rig_pull(&rig, 2, 2, "8"));
    primary_sync_ended(rig.primary, false, rig.now);
    assert_int_equal(rig.links[1].drops, 1);
    assert_int_equal(rig.links[2].drops, 0);
    rig_end(&rig);
}
