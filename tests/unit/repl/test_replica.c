/* SPDX-License-Identifier: BSD-3-Clause */
#include "repl/replica.h"

#include "replica_rig.h"

TEST(a_replica_without_a_primary_does_nothing)
{
    struct rig *rig = rig_new();

    tick(rig, 100000);
    assert_int_equal(0, rig->dials);
    assert_int_equal(STATUS_NO_LINK, state_of(rig));
    replica_stop(rig->replica);
    rig_free(rig);
}

TEST(it_goes_on_from_where_it_is_and_says_how_far_it_gets)
{
    struct rig *rig = rig_new();

    connect_partial(rig);
    assert_string_equal("h", rig->host);
    assert_int_equal(7000, rig->port);
    assert_int_equal(KEY, rig->key);
    assert_int_equal(STATUS_CONNECTED, state_of(rig));
    for (uint64_t sequence = 42; sequence < 50; sequence++) {
        hear_group(rig, sequence, 30);
        assert_int_equal(sequence, rig->place.sequence);
        assert_string_equal("", said(rig));
        tick(rig, 500);
        assert_string_equal("", said(rig));
        rig->place.synced = rig->place.position - 1;
        tick(rig, 500);
        assert_non_null(strstr(said(rig), " FACK "));
    }
    rig->place.synced = 0;
    hear(rig, "+PING\r\n");
    assert_string_equal("", said(rig));
    hear(rig, "+GETACK\r\n");
    expect_ack(rig, rig->place.position);
    rig_free(rig);
}

/* Otherwise the disk's position would be sent a second later. */
TEST(a_replica_that_was_asked_acknowledges_again_once_synced)
{
    struct rig *rig = rig_new();
    uint64_t first;

    connect_partial(rig);
    rig->place.synced = rig->place.position;
    replica_disk_moved(rig->replica, rig->now_ms);
    assert_string_equal("", said(rig)); /* no GETACK before */
    hear_group(rig, 42, 30);
    first = rig->place.position;
    hear(rig, "+GETACK\r\n");
    assert_non_null(strstr(said(rig), " FACK 5000"));
    replica_disk_moved(rig->replica, rig->now_ms);
    assert_string_equal("", said(rig)); /* nothing is new */
    hear_group(rig, 43, 30);
    hear(rig, "+GETACK\r\n");
    (void)said(rig);
    rig->place.synced = first; /* a part of what was asked for */
    replica_disk_moved(rig->replica, rig->now_ms);
    assert_non_null(strstr(said(rig), " FACK "));
    rig->place.synced = rig->place.position;
    replica_disk_moved(rig->replica, rig->now_ms);
    assert_non_null(strstr(said(rig), " FACK "));
    hear_group(rig, 44, 30); /* without GETACK */
    rig->place.synced = rig->place.position;
    replica_disk_moved(rig->replica, rig->now_ms);
    assert_string_equal("", said(rig));
    rig_free(rig);
}

TEST(what_is_asked_for_on_one_link_is_not_said_on_the_next)
{
    struct rig *rig = rig_new();

    connect_partial(rig);
    rig->place.synced = rig->place.position - 1;
    hear(rig, "+GETACK\r\n");
    (void)said(rig);
    end_link(rig);
    rig->place.synced = rig->place.position;
    replica_disk_moved(rig->replica, rig->now_ms);
    assert_string_equal("", said(rig));
    tick(rig, 1000);
    rig->place.synced = 0;
    connect_partial(rig);
    rig->place.synced = rig->place.position;
    replica_disk_moved(rig->replica, rig->now_ms);
    assert_string_equal("", said(rig));
    rig_free(rig);
}

TEST(what_an_older_link_brings_is_ignored)
{
    struct rig *rig = rig_new();
    size_t used;
    uint64_t old;

    follow(rig);
    old = rig->number;
    follow(rig);
    assert_int_equal(1, rig->closes);
    replica_opened(rig->replica, old, rig->now_ms);
    replica_bytes(rig->replica, old, slice_lit("-ERR\r\n"), &used, rig->now_ms);
    replica_closed(rig->replica, old, "gone", rig->now_ms);
    assert_int_equal(1, rig->closes);
    assert_string_equal("", said(rig));
    assert_int_equal(STATUS_CONNECTING, state_of(rig));
    rig_free(rig);
}

TEST(a_replica_without_data_asks_for_everything)
{
    struct rig *rig = rig_new();

    rig->place.history[0] = '\0';
    shake_hands(rig);
    assert_string_equal("PSYNC ? -1", said(rig));
    hear(rig, "+CONTINUE " HISTORY " " KEY_TEXT "\r\n");
    assert_false(replica_is_connected(rig->replica));
    assert_false(rig->linked);
    rig_free(rig);
}

TEST(a_distrusted_replica_asks_for_everything_until_it_has_it)
{
    struct rig *rig = rig_new();

    connect_partial(rig);
    replica_distrust(rig->replica);
    assert_true(replica_is_connected(rig->replica));
    for (int i = 0; i < 2; i++) {
        end_link(rig);
        expect_full_psync(rig);
        hear(rig, "+FULLRESYNC " HISTORY " 9000 77 " KEY_TEXT " 5000\r\n");
    }
    hear(rig, "$0\r\n");
    load(rig);
    assert_true(replica_is_connected(rig->replica));
    expect_ack(rig, 9000);
    end_link(rig);
    expect_partial_psync(rig);
    rig_free(rig);
}

TEST(distrust_between_question_and_answer_counts)
{
    struct rig *rig = rig_new();

    shake_hands(rig);
    expect_psync(rig);
    replica_distrust(rig->replica);
    hear(rig, "+CONTINUE " HISTORY " " KEY_TEXT "\r\n");
    assert_false(replica_is_connected(rig->replica));
    rig_free(rig);
}

TEST(a_snapshot_is_put_in_place_before_the_log_is_read)
{
    struct rig *rig = rig_new();
    struct buf rest = { 0 };

    connect_full(rig);
    assert_int_equal(9000, rig->answer.position);
    assert_int_equal(77, rig->answer.sequence);
    assert_int_equal(5, rig->loaded.len);
    assert_memory_equal("abcde", rig->loaded.data, 5);
    tick(rig, 1000);
    expect_ack(rig, 0);
    rig->key = 0;
    buf_append_slice(&rest, slice_lit("$0\r\n"));
    make_group(&rest, 78, 10);
    hear_bytes(rig, buf_slice(&rest));
    assert_int_equal(1, rig->ends);
    assert_true(rig->paused);
    assert_int_equal(0, rig->applied);
    assert_int_equal(0, rig->key);
    /* even if that takes long */
    for (int i = 0; i < 100; i++) {
        tick(rig, 1000);
        expect_ack(rig, 0);
    }
    replica_go_on(rig->replica, rig->now_ms); /* it says nothing here */
    assert_true(rig->paused);
    load(rig);
    assert_false(rig->paused);
    assert_int_equal(1, rig->applied);
    assert_int_equal(KEY, rig->key);
    assert_true(replica_is_connected(rig->replica));
    expect_ack(rig, 9000);
    assert_int_equal(0, rig->cancels);
    buf_free(&rest);
    rig_free(rig);
}

TEST(a_link_that_ends_before_the_snapshot_does_cancels_the_load)
{
    struct rig *rig = rig_new();

    connect_full(rig);
    end_link(rig);
    assert_int_equal(1, rig->cancels);
    tick(rig, 10000);
    connect_full(rig);
    follow(rig);
    assert_int_equal(2, rig->cancels);
    connect_full(rig);
    hear(rig, "$0\r\n");
    replica_stop(rig->replica);
    assert_int_equal(3, rig->cancels);
    load(rig); /* too late */
    assert_int_equal(STATUS_NO_LINK, state_of(rig));
    rig_free(rig);
}

TEST(a_link_that_ends_behind_the_snapshot_does_not_matter)
{
    struct rig *rig = rig_new();

    connect_full(rig);
    hear(rig, "$0\r\n");
    end_link(rig);
    tick(rig, 10000);
    assert_false(rig->linked);
    assert_int_equal(0, rig->cancels);
    load(rig);
    assert_int_equal(KEY, rig->key);
    assert_true(rig->linked);
    connect_partial(rig);
    rig_free(rig);
}

TEST(a_snapshot_of_another_state_is_not_followed_on)
{
    struct rig *rig = rig_new();

    connect_full(rig);
    hear(rig, "$0\r\n");
    load(rig);
    assert_true(replica_is_connected(rig->replica));
    follow(rig);
    rig->key = 0;
    (void)said(rig);
    connect_full(rig);
    hear(rig, "$0\r\n");
    rig->place.position = 8999; /* before the announced one */
    replica_loaded(rig->replica, true, NULL, rig->now_ms);
    assert_false(replica_is_connected(rig->replica));
    assert_int_equal(0, rig->key);
    assert_non_null(strstr(reason_of(rig), "another state"));
    expect_full_psync(rig);
    rig_free(rig);
}

TEST(a_snapshot_that_cannot_be_loaded_or_begun_is_tried_again)
{
    struct rig *rig = rig_new();

    connect_full(rig);
    hear(rig, "$0\r\n");
    replica_loaded(rig->replica, false, "it is torn", rig->now_ms);
    assert_false(rig->linked);
    assert_string_equal("the snapshot could not be loaded: it is torn",
                        reason_of(rig));
    tick(rig, 10000);
    rig->takes_load = false;
    shake_hands(rig);
    (void)said(rig);
    hear(rig, "+FULLRESYNC " HISTORY " 9000 77 " KEY_TEXT " 5000\r\n");
    assert_false(rig->linked);
    assert_string_equal("the snapshot cannot be loaded: no room",
                        reason_of(rig));
    expect_redial(rig);
    rig_free(rig);
}

TEST(a_snapshot_may_be_found_bad_before_its_end)
{
    struct rig *rig = rig_new();

    connect_full(rig);
    replica_loaded(rig->replica, true, NULL, rig->now_ms); /* it cannot be */
    assert_int_equal(STATUS_SYNC, state_of(rig));
    replica_loaded(rig->replica, false, "it is damaged", rig->now_ms);
    assert_string_equal("the snapshot could not be loaded: it is damaged",
                        reason_of(rig));
    assert_int_equal(0, rig->cancels);
    assert_false(rig->linked);
    tick(rig, 10000);
    assert_true(rig->linked);
    rig_free(rig);
}

TEST(a_load_that_fails_before_its_end_ends_the_link)
{
    struct rig *rig = rig_new();

    connect_full(rig);
    hear(rig, "$3\r\nabc");
    replica_loaded(rig->replica, true, NULL, rig->now_ms); /* not so soon */
    assert_true(rig->linked);
    replica_loaded(rig->replica, false, "it is torn", rig->now_ms);
    assert_false(rig->linked);
    assert_string_equal("the snapshot could not be loaded: it is torn",
                        reason_of(rig));
    expect_redial(rig);
    rig_free(rig);
}

TEST(a_load_that_has_enough_pauses_the_link)
{
    struct rig *rig = rig_new();
    size_t used = 99;

    rig->load_has_room = false;
    connect_full(rig);
    assert_true(rig->paused);
    assert_int_equal(3, rig->loaded.len);
    replica_bytes(rig->replica, rig->number, slice_lit("more"), &used,
                  rig->now_ms);
    assert_int_equal(0, used);
    tick(rig, 2 * TIMEOUT_MS); /* silence means nothing while paused */
    assert_true(rig->linked);
    replica_go_on(rig->replica, rig->now_ms);
    assert_true(rig->paused);
    assert_int_equal(5, rig->loaded.len);
    replica_go_on(rig->replica, rig->now_ms);
    assert_false(rig->paused);
    rig->load_has_room = true;
    hear(rig, "$0\r\n");
    assert_int_equal(1, rig->ends);
    rig_free(rig);
}

TEST(a_group_that_has_to_wait_is_given_again)
{
    struct rig *rig = rig_new();
    struct buf groups = { 0 };

    connect_partial(rig);
    make_group(&groups, 42, 100);
    make_group(&groups, 43, 100);
    for (int split = 0; split < 2; split++) {
        rig->next = REPLICA_LATER;
        if (split) {
            struct slice bytes = buf_slice(&groups);

            bytes.len = 50;
            hear_bytes(rig, bytes);
            bytes = (struct slice){ groups.data + 50, groups.len - 50 };
            hear_bytes(rig, bytes);
        } else {
            hear_bytes(rig, buf_slice(&groups));
        }
        assert_true(rig->paused);
        replica_go_on(rig->replica, rig->now_ms);
        assert_true(rig->paused);
        assert_int_equal(2 * split, rig->applied);
        rig->next = REPLICA_APPLIED;
        replica_go_on(rig->replica, rig->now_ms);
        assert_false(rig->paused);
        assert_int_equal(2 * split + 2, rig->applied);
        buf_reset(&groups, 0);
        make_group(&groups, 44, 100);
        make_group(&groups, 45, 100);
    }
    buf_free(&groups);
    rig_free(rig);
}

TEST(silence_ends_a_link)
{
    struct rig *rig = rig_new();

    connect_partial(rig);
    tick(rig, TIMEOUT_MS - 1);
    assert_int_equal(0, rig->closes);
    hear(rig, "+PING\r\n");
    tick(rig, TIMEOUT_MS - 1);
    assert_int_equal(0, rig->closes);
    tick(rig, 1);
    assert_int_equal(1, rig->closes);
    assert_string_equal("the primary sent nothing for 10000 ms",
                        reason_of(rig));
    rig_free(rig);
}

TEST(a_server_that_is_asked_to_take_over_agrees_or_refuses)
{
    struct replica_target target = { .host = "h", .port = 1, .failover = true };
    struct rig *rig = rig_new();

    for (int i = 0; i < 2; i++) {
        replica_follow(rig->replica, &target, rig->now_ms);
        assert_int_equal(REPLICA_FAILOVER_ASKED,
                         replica_failover(rig->replica));
        shake_hands(rig);
        assert_non_null(strstr(said(rig), " FAILOVER"));
        hear(rig, i == 0 ? "-ERR I will not\r\n"
                         : "+CONTINUE " HISTORY " " KEY_TEXT "\r\n");
        assert_int_equal(i == 0 ? REPLICA_FAILOVER_REFUSED
                                : REPLICA_FAILOVER_DONE,
                         replica_failover(rig->replica));
    }
    (void)said(rig);
    /* It is an ordinary primary from now on. */
    end_link(rig);
    expect_partial_psync(rig);
    assert_int_equal(REPLICA_FAILOVER_DONE, replica_failover(rig->replica));
    rig_free(rig);
}

TEST(a_successor_that_still_follows_us_is_no_ring)
{
    struct replica_target target = { .host = "h", .port = 1, .failover = true };
    char chain[WIRE_CHAIN_MAX][WIRE_ID_CHARS + 1];
    struct rig *rig = rig_new();

    replica_follow(rig->replica, &target, rig->now_ms);
    replica_opened(rig->replica, rig->number, rig->now_ms);
    (void)said(rig);
    hear(rig, "+BLOOMERY 1 " PRIMARY_ID " " RUN_ID "\r\n");
    assert_string_equal("REPLCONF listening-port 7379", said(rig));
    assert_int_equal(1, replica_chain(rig->replica, chain));
    hear(rig, "+OK\r\n+CONTINUE " HISTORY " " KEY_TEXT "\r\n");
    assert_int_equal(REPLICA_FAILOVER_DONE, replica_failover(rig->replica));
    rig_free(rig);
}

TEST(a_link_may_end_before_its_snapshot_is_loaded)
{
    struct rig *rig = rig_new();

    connect_full(rig);
    hear(rig, "$0\r\n");
    assert_false(replica_is_cut(rig->replica));
    replica_closed(rig->replica, rig->number, "reset", rig->now_ms);
    rig->linked = false;
    assert_true(replica_is_cut(rig->replica));
    replica_loaded(rig->replica, true, NULL, rig->now_ms);
    assert_false(replica_is_cut(rig->replica));
    rig_free(rig);
}

TEST(figures_say_how_it_stands)
{
    struct status_figures figures = { 0 };
    struct rig *rig = rig_new();

    connect_full(rig);
    replica_describe(rig->replica, &figures);
    assert_int_equal(5000, figures.sync_total_bytes);
    assert_int_equal(5, figures.sync_read_bytes);
    assert_int_equal(rig->now_ms, figures.sync_heard_mono_ms);
    assert_int_equal(0, figures.down_mono_ms);
    assert_int_equal(0, figures.synced_mono_ms);
    hear(rig, "$0\r\n");
    load(rig);
    rig->now_ms += 7;
    replica_closed(rig->replica, rig->number, "reset", rig->now_ms);
    rig->linked = false;
    replica_describe(rig->replica, &figures);
    assert_int_equal(0, figures.sync_total_bytes);
    assert_int_equal(rig->now_ms, figures.down_mono_ms);
    assert_int_equal(rig->now_ms - 7, figures.synced_mono_ms);
    assert_string_equal("the link ended: reset", figures.reason);
    replica_stop(rig->replica);
    replica_describe(rig->replica, &figures);
    assert_int_equal(0, figures.synced_mono_ms);
    rig_free(rig);
}
