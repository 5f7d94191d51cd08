/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How replicas join, which acknowledgements are valid, and what is published.
 */
#include "repl/primary.h"

#include "../test.h"
#include "primary_rig.h"

static const char *
refusal(struct rig *rig, uint64_t id)
{
    struct rig_link *link = &rig->links[id];

    buf_append(&link->sent, "", 1);
    return link->sent.data;
}

static struct status_figures
figures_of(const struct rig *rig)
{
    struct status_figures figures = { .epoch = 9, .backlog_active = true };

    (void)primary_describe(rig->primary, &figures, NULL, 0);
    return figures;
}

/* ---- joining ------------------------------------------------------------- */

TEST(a_replica_that_knows_a_place_of_the_history_resumes_there)
{
    struct rig rig;
    uint64_t middle;

    rig_begin(&rig);
    rig_write(&rig, 10);
    middle = rig.position;
    rig_write(&rig, 10);
    assert_true(rig_attach(&rig, 1, 1, RIG_HISTORY, RIG_START));
    assert_true(rig_attach(&rig, 2, 2, RIG_HISTORY, middle));
    assert_true(rig_attach(&rig, 3, 3, RIG_HISTORY, rig.position));
    assert_string_equal(rig_received(&rig, 1), "+CONTINUE 1 2");
    assert_string_equal(rig_received(&rig, 2), "+CONTINUE 2");
    assert_string_equal(rig_received(&rig, 3), "+CONTINUE");
    assert_int_equal(rig.acked, 3);
    rig_write(&rig, 10);
    assert_false(rig_stream(&rig));
    assert_string_equal(rig_received(&rig, 1), "3");
    assert_string_equal(rig_received(&rig, 3), "3");
    assert_int_equal(figures_of(&rig).partial_syncs, 3);
    assert_int_equal(figures_of(&rig).full_syncs, 0);
    assert_int_equal(rig.asked, 0);
    rig_end(&rig);
}

TEST(the_answer_names_the_history_and_the_key)
{
    struct wire_answer answer;
    struct rig rig;
    char reason[100];

    rig_begin(&rig);
    rig_follow(&rig, 1);
    assert_true(wire_parse_answer(
        (struct slice){ rig.links[1].sent.data, rig.links[1].sent.len - 2 },
        &answer, reason, sizeof(reason)));
    assert_string_equal(answer.history, RIG_HISTORY);
    assert_int_equal(answer.key, LOG_KEY);
    rig_end(&rig);
}

TEST(a_replica_of_another_place_waits_for_a_full_synchronization)
{
    struct rig rig;

    rig_begin(&rig);
    rig_write(&rig, 10);
    assert_true(rig_attach(&rig, 1, 1, NULL, 0));
    assert_true(rig_attach(&rig, 2, 2, RIG_OTHER, rig.position));
    assert_true(rig_attach(&rig, 3, 3, RIG_HISTORY, RIG_START - 1));
    assert_true(rig_attach(&rig, 4, 4, RIG_HISTORY, rig.position + 1));
    for (uint64_t id = 1; id <= 4; id++) {
        assert_string_equal(rig_received(&rig, id), "+PING");
        assert_int_equal(rig_shown(&rig, id).state, STATUS_WAITS);
    }
    assert_int_equal(figures_of(&rig).full_syncs, 4);
    assert_int_equal(figures_of(&rig).refused_partial_syncs, 3);
    assert_int_equal(figures_of(&rig).partial_syncs, 0);
    rig_end(&rig);
}

TEST(after_a_promotion_the_old_history_counts_up_to_its_end)
{
    struct rig rig;
    uint64_t until;

    rig_begin(&rig);
    rig_write(&rig, 10);
    rig_follow(&rig, 3);
    until = rig.position;
    history_go_on(&rig.history, RIG_OTHER, until);
    primary_set_history(rig.primary, &rig.history, LOG_KEY);
    rig_write(&rig, 10);
    assert_true(rig_attach(&rig, 1, 1, RIG_HISTORY, until));
    assert_true(rig_attach(&rig, 2, 2, RIG_HISTORY, rig.position));
    assert_string_equal(rig_received(&rig, 1), "+CONTINUE 2");
    assert_string_equal(rig_received(&rig, 2), "+PING");
    (void)rig_stream(&rig);
    assert_string_equal(rig_received(&rig, 3), "+CONTINUE 2"); /* stayed */
    rig_end(&rig);
}

TEST(another_key_drops_those_who_follow)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    assert_true(rig_attach(&rig, 2, 2, NULL, 0));
    primary_set_history(rig.primary, &rig.history, LOG_KEY);
    assert_int_equal(rig.links[1].drops, 0);
    primary_set_history(rig.primary, &rig.history, LOG_KEY + 1);
    assert_int_equal(rig.links[1].drops, 1);
    assert_string_equal(rig.links[1].reason,
                        "the key of the stream has changed");
    assert_int_equal(rig.links[2].drops, 0);
    rig_end(&rig);
}

TEST(no_more_than_max_replicas_join_and_a_newer_link_replaces_an_older)
{
    struct rig rig;

    rig_begin(&rig);
    for (uint64_t id = 1; id <= 4; id++) {
        rig_follow(&rig, id);
    }
    assert_false(rig_attach(&rig, 5, 5, RIG_HISTORY, rig.position));
    assert_string_equal(refusal(&rig, 5),
                        "-ERR there are as many replicas here as max-replicas "
                        "allows\r\n");
    assert_int_equal(primary_replicas(rig.primary), 4);
    rig.links[5].sent.len = 0;
    assert_true(rig_attach(&rig, 5, 2, RIG_HISTORY, rig.position));
    assert_int_equal(rig.links[2].drops, 1);
    assert_string_equal(rig.links[2].reason,
                        "the same server has connected again");
    assert_string_equal(rig_received(&rig, 5), "+CONTINUE");
    assert_int_equal(primary_replicas(rig.primary), 4);
    rig_end(&rig);
}

TEST(without_memory_a_replica_is_refused_or_dropped)
{
    struct rig rig;

    for (unsigned nth = 1; nth <= 2; nth++) {
        rig_begin(&rig);
        buf_append_slice(&rig.links[1].sent, slice_lit("x"));
        rig.links[1].sent.len = 0;
        mem_fail_at(nth);
        assert_false(rig_attach(&rig, 1, 1, RIG_HISTORY, rig.position));
        assert_true(mem_fail_clear());
        assert_string_equal(refusal(&rig, 1),
                            "-ERR there is no memory for a replica here at "
                            "present, try again later\r\n");
        rig.links[1].fails = true;
        assert_true(rig_attach(&rig, 1, 1, RIG_HISTORY, rig.position));
        assert_int_equal(rig.links[1].drops, 1);
        assert_int_equal(primary_replicas(rig.primary), 0);
        assert_true(rig_attach(&rig, 1, 1, NULL, 0));
        assert_int_equal(rig.links[1].drops, 2);
        rig_end(&rig);
    }
}

TEST(when_the_backlog_breaks_all_go_until_it_begins_anew)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    assert_true(rig_attach(&rig, 2, 2, NULL, 0));
    rig_pass(&rig, 2000, 2);
    assert_int_equal(rig.asked, 1);
    for (size_t i = 0; !backlog_is_broken(rig.backlog); i++) {
        struct journal_tap tap = backlog_tap(rig.backlog);

        mem_fail_at(1);
        tap.text(tap.ctx,
                 slice_lit("0123456789012345678901234567890123456789"));
        (void)mem_fail_clear();
    }
    (void)rig_stream(&rig);
    assert_int_equal(primary_replicas(rig.primary), 0);
    assert_string_equal(rig.links[1].reason,
                        "there was no memory for the backlog");
    assert_int_equal(rig.links[2].drops, 1);
    assert_int_equal(rig.cancelled, 1);
    assert_false(rig_attach(&rig, 3, 3, RIG_HISTORY, rig.position));
    assert_string_equal(refusal(&rig, 3),
                        "-ERR there is no memory for replication here at "
                        "present, try again later\r\n");
    backlog_begin(rig.backlog, rig.position);
    rig_follow(&rig, 4);
    rig_end(&rig);
}

/* ---- acknowledgements ---------------------------------------------------- */

TEST(acknowledgements_move_forward_and_are_told)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    rig.acked = 0;
    rig_publish(&rig, 10);
    rig.now += 500;
    primary_acked(rig.primary, 1, RIG_START, 0, rig.now);
    assert_int_equal(rig.acked, 0); /* nothing moved */
    assert_int_equal(rig_shown(&rig, 1).acked_mono_ms, rig.now);
    primary_acked(rig.primary, 1, rig.position, RIG_START, rig.now);
    assert_int_equal(rig.acked, 1);
    assert_int_equal(rig_shown(&rig, 1).acked, rig.position);
    assert_int_equal(rig_shown(&rig, 1).synced, RIG_START);
    primary_acked(rig.primary, 1, rig.position, UINT64_MAX, rig.now);
    assert_int_equal(rig.acked, 2);
    assert_int_equal(rig_shown(&rig, 1).synced, rig.position);
    primary_acked(rig.primary, 5, rig.position, 0, rig.now); /* nobody */
    assert_int_equal(rig.links[1].drops, 0);
    rig_end(&rig);
}

TEST(impossible_acknowledgements_drop_the_replica)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    rig_follow(&rig, 2);
    rig_write(&rig, 10); /* not sent yet */
    primary_acked(rig.primary, 1, rig.position, 0, rig.now);
    assert_int_equal(rig.links[1].drops, 1);
    assert_string_equal(rig.links[1].reason,
                        "it acknowledged position 5170, having been sent 5000 "
                        "and acknowledged 5000");
    (void)rig_stream(&rig);
    primary_acked(rig.primary, 2, rig.position, 0, rig.now);
    assert_int_equal(rig.links[2].drops, 0);
    primary_acked(rig.primary, 2, rig.position - 1, 0, rig.now);
    assert_int_equal(rig.links[2].drops, 1);
    assert_int_equal(primary_replicas(rig.primary), 0);
    rig_end(&rig);
}

TEST(acknowledgements_are_asked_for_between_groups)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    assert_true(rig_attach(&rig, 2, 2, NULL, 0));
    (void)rig_received(&rig, 1);
    rig_ask(&rig, rig.position);
    assert_string_equal(rig_received(&rig, 1), "+GETACK");
    assert_string_equal(rig_received(&rig, 2), "+PING");

    rig.links[1].stuck = true;
    rig_publish(&rig, 3 << 20);
    assert_string_equal(rig_received(&rig, 1), "...");
    rig_ask(&rig, rig.position);
    rig_ask(&rig, rig.position);
    assert_string_equal(rig_received(&rig, 1), "...");
    for (int i = 0; i < 3; i++) {
        rig.links[1].unsent = 0;
        primary_drained(rig.primary, 1, rig.now);
    }
    assert_string_equal(rig_received(&rig, 1), "1 +GETACK");
    rig_end(&rig);
}

/* An acknowledgement of an earlier position would not help the client. */
TEST(an_ask_stays_due_until_its_position_was_sent)
{
    struct rig rig;
    uint64_t first;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    (void)rig_received(&rig, 1);
    rig.released = RIG_START;
    rig_write(&rig, 10);
    first = rig.position;
    rig_publish(&rig, 10);
    rig_ask(&rig, rig.position);
    assert_string_equal(rig_received(&rig, 1), "");
    rig_pass(&rig, 5000, 0);
    assert_string_equal(rig_received(&rig, 1), "");
    assert_true(primary_owes_ask(rig.primary));
    rig.released = first;
    (void)rig_stream(&rig);
    assert_string_equal(rig_received(&rig, 1), "1");
    rig.released = UINT64_MAX;
    (void)rig_stream(&rig);
    assert_string_equal(rig_received(&rig, 1), "2 +GETACK");
    assert_false(primary_owes_ask(rig.primary));
    rig_publish(&rig, 10);
    assert_string_equal(rig_received(&rig, 1), "3");
    rig_end(&rig);
}

TEST(a_later_ask_does_not_put_off_an_earlier_one)
{
    struct primary_ask asks = { 0 };
    struct rig rig;
    uint64_t first;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    (void)rig_received(&rig, 1);
    rig.released = RIG_START;
    rig_write(&rig, 10);
    first = rig.position;
    rig_write(&rig, 10);
    primary_ask_add(&asks, (struct primary_ask){ rig.position, rig.position });
    primary_ask_add(&asks, (struct primary_ask){ first, first });
    primary_ask_add(&asks, (struct primary_ask){ 0, 0 });
    assert_int_equal(asks.first, first);
    assert_int_equal(asks.last, rig.position);
    primary_ask_acks(rig.primary, asks);
    rig.released = first;
    (void)rig_stream(&rig);
    assert_string_equal(rig_received(&rig, 1), "1 +GETACK");
    assert_true(primary_owes_ask(rig.primary));
    rig.released = UINT64_MAX;
    (void)rig_stream(&rig);
    assert_string_equal(rig_received(&rig, 1), "2 +GETACK");
    assert_false(primary_owes_ask(rig.primary));
    rig_end(&rig);
}

TEST(nobody_is_asked_twice_for_the_same_position)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    (void)rig_received(&rig, 1);
    rig_publish(&rig, 10);
    for (int i = 0; i < 3; i++) {
        rig_ask(&rig, rig.position);
    }
    assert_string_equal(rig_received(&rig, 1), "1 +GETACK");
    rig_follow(&rig, 2); /* but this one was not */
    rig_ask(&rig, rig.position);
    assert_string_equal(rig_received(&rig, 1), "");
    assert_string_equal(rig_received(&rig, 2), "+CONTINUE +GETACK");
    rig_ask(&rig, 0); /* no client waits */
    assert_false(primary_owes_ask(rig.primary));
    rig_end(&rig);
}

/* ---- older data than a replica's -------------------------------------------
 */

static const struct history_past ended = { RIG_OTHER, 4000 };

/* The other replicas may have newer data than ours, too. */
TEST(a_primary_with_older_data_gives_no_full_synchronization)
{
    struct rig rig;

    rig_begin(&rig);
    primary_set_ended(rig.primary, &ended, 1);
    rig_follow(&rig, 1);
    rig.limits.sync_delay_ms = 0;
    primary_set_limits(rig.primary, &rig.limits);
    assert_true(rig_attach(&rig, 2, 2, NULL, 0));
    rig_sync_begins(&rig);
    assert_true(rig_attach(&rig, 3, 3, RIG_OTHER, 4000)); /* waits */
    assert_false(primary_is_behind(rig.primary));
    assert_false(rig_attach(&rig, 4, 4, RIG_OTHER, 4001));
    assert_true(primary_is_behind(rig.primary));
    assert_string_equal(rig_received(&rig, 4), "-ERR");
    assert_int_equal(rig.links[1].drops, 0);
    assert_int_equal(rig.links[2].drops, 1);
    assert_int_equal(rig.links[3].drops, 1);
    assert_int_equal(primary_replicas(rig.primary), 1);
    for (uint64_t id = 2; id < 4; id++) {
        rig.links[id].drops = 0;
        assert_false(rig_attach(&rig, id, (unsigned)id, NULL, 0));
    }
    rig_pass(&rig, 1000, 2);
    assert_int_equal(primary_replicas(rig.primary), 1);

    primary_set_ended(rig.primary, NULL, 0); /* our data counts all the same */
    assert_false(primary_is_behind(rig.primary));
    assert_true(rig_attach(&rig, 4, 4, RIG_OTHER, 4001));
    rig_end(&rig);
}

TEST(a_replica_ahead_in_an_unknown_history_does_not_count)
{
    struct history_past both[] = { ended, { RIG_THIRD, 100 } };
    struct rig rig;

    rig_begin(&rig);
    primary_set_ended(rig.primary, both, 2);
    assert_true(rig_attach(&rig, 1, 1, RIG_FOURTH, 9999)); /* an unknown id */
    assert_true(rig_attach(&rig, 2, 2, NULL, 0));
    assert_true(rig_attach(&rig, 3, 3, RIG_THIRD, 100));
    assert_false(primary_is_behind(rig.primary));
    assert_false(rig_attach(&rig, 4, 4, RIG_THIRD, 101));
    assert_true(primary_is_behind(rig.primary));
    rig_end(&rig);
}

/* ---- the stream ---------------------------------------------------------- */

TEST(what_is_not_released_is_not_sent)
{
    struct rig rig;
    uint64_t first;

    rig_begin(&rig);
    rig.released = rig.position;
    (void)rig_stream(&rig);
    rig_follow(&rig, 1);
    rig_write(&rig, 10);
    first = rig.position;
    rig_publish(&rig, 10);
    assert_string_equal(rig_received(&rig, 1), "+CONTINUE");
    rig.released = first;
    (void)rig_stream(&rig);
    assert_string_equal(rig_received(&rig, 1), "1");
    rig.released = RIG_START; /* a fault: as it was before */
    (void)rig_stream(&rig);
    rig_pass(&rig, 10000, 0);
    assert_string_equal(rig_received(&rig, 1), "+PING");
    rig.released = UINT64_MAX;
    (void)rig_stream(&rig);
    assert_string_equal(rig_received(&rig, 1), "2");
    assert_int_equal(rig.links[1].drops, 0);
    rig_end(&rig);
}

TEST(a_turn_gives_a_replica_a_mebibyte_and_says_that_there_is_more)
{
    struct rig rig;
    unsigned turns = 1;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    rig_write(&rig, 5 << 20);
    assert_true(rig_stream(&rig));
    assert_true(rig.links[1].sent.len < (1 << 20) + 100000);
    while (rig_stream(&rig)) {
        turns++;
    }
    assert_int_equal(turns, 4); /* and the last one */
    assert_string_equal(rig_received(&rig, 1), "+CONTINUE 1");
    rig_end(&rig);
}

TEST(what_somebody_needs_is_kept_and_the_rest_is_trimmed)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    rig.links[1].stuck = true;
    for (int i = 0; i < 40; i++) {
        rig_publish(&rig, 100000);
    }
    assert_true(backlog_first(rig.backlog) < RIG_START + (2 << 20));
    assert_true(backlog_bytes(rig.backlog) > 2 << 20);
    primary_detached(rig.primary, 1);
    (void)rig_stream(&rig);
    assert_true(backlog_first(rig.backlog) > rig.position - (128 << 10));
    assert_true(backlog_bytes(rig.backlog) < 1 << 20);
    rig_end(&rig);
}

TEST(what_no_replica_has_acknowledged_stays_for_a_merge_up_to_its_limit)
{
    struct rig rig;
    uint64_t acked;

    rig_begin(&rig);
    rig.limits.merge_bytes = 2 << 20;
    primary_set_limits(rig.primary, &rig.limits);
    for (int i = 0; i < 10; i++) { /* nobody has followed yet */
        rig_publish(&rig, 100000);
    }
    assert_int_equal(primary_furthest(rig.primary), 0);
    assert_true(backlog_first(rig.backlog) > rig.position - (256 << 10));
    rig_follow(&rig, 1);
    acked = rig.position;
    assert_int_equal(primary_furthest(rig.primary), acked);
    primary_detached(rig.primary, 1);
    for (int i = 0; i < 15; i++) {
        rig_publish(&rig, 100000);
    }
    assert_int_equal(primary_furthest(rig.primary), acked);
    assert_true(backlog_first(rig.backlog) <= acked);
    for (int i = 0; i < 15; i++) {
        rig_publish(&rig, 100000);
    }
    assert_true(backlog_first(rig.backlog) > acked);
    assert_true(backlog_first(rig.backlog) <= rig.position - (2 << 20));
    /* In another history these positions mean nothing. */
    history_go_on(&rig.history, RIG_OTHER, rig.position);
    primary_set_history(rig.primary, &rig.history, LOG_KEY);
    assert_int_equal(primary_furthest(rig.primary), 0);
    rig_publish(&rig, 10);
    assert_true(backlog_first(rig.backlog) > rig.position - (256 << 10));
    rig_end(&rig);
}

TEST(a_backlog_that_was_moved_under_a_replica_drops_it)
{
    struct rig rig;

    rig_begin(&rig);
    rig_follow(&rig, 1);
    backlog_begin(rig.backlog, rig.position + 100000);
    (void)rig_stream(&rig);
    assert_string_equal(rig.links[1].reason,
                        "the backlog begins behind its position");
    rig_end(&rig);
}

/* ---- leaving, and what is shown ------------------------------------------ */

TEST(one_or_all_can_be_dropped)
{
    struct rig rig;

    rig_begin(&rig);
    for (uint64_t id = 1; id <= 4; id++) {
        rig_follow(&rig, id);
    }
    assert_true(primary_drop(rig.primary, 2, "CLIENT KILL"));
    assert_false(primary_drop(rig.primary, 2, "CLIENT KILL"));
    assert_string_equal(rig.links[2].reason, "CLIENT KILL");
    primary_detached(rig.primary, 3); /* by itself: no hook */
    primary_detached(rig.primary, 3);
    assert_int_equal(rig.links[3].drops, 0);
    primary_drop_all(rig.primary, "new data");
    assert_string_equal(rig.links[1].reason, "new data");
    assert_string_equal(rig.links[4].reason, "new data");
    assert_int_equal(primary_replicas(rig.primary), 0);
    rig_end(&rig);
}

TEST(replicas_are_shown_in_the_order_in_which_they_came)
{
    struct rig rig;
    struct status_figures figures = { .epoch = 9, .backlog_active = true };
    struct status_replica replicas[RIG_LINKS] = { { .id = 99 } };

    rig_begin(&rig);
    rig_follow(&rig, 2);
    rig_follow(&rig, 1);
    assert_true(rig_attach(&rig, 3, 3, NULL, 0));
    rig.links[1].unsent = 77;
    assert_int_equal(primary_describe(rig.primary, &figures, replicas, 2), 3);
    assert_int_equal(replicas[0].id, 2);
    assert_int_equal(replicas[1].id, 1);
    assert_int_equal(replicas[2].id, 0);
    assert_string_equal(replicas[1].address, "10.0.0.1:1");
    assert_int_equal(replicas[1].port, 7001);
    assert_int_equal(replicas[1].unsent_bytes, 77);
    assert_int_equal(replicas[1].state, STATUS_ONLINE);
    assert_int_equal(replicas[1].since_mono_ms, rig.now);
    rig_write(&rig, 10);
    figures = figures_of(&rig);
    assert_int_equal(figures.backlog_first, RIG_START);
    assert_int_equal(figures.backlog_end, rig.position);
    assert_int_equal(figures.backlog_size, 16 << 10);
    assert_int_equal(figures.backlog_bytes, backlog_bytes(rig.backlog));
    assert_int_equal(figures.epoch, 9); /* not touched */
    assert_true(figures.backlog_active);
    rig_end(&rig);
}
