/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A daemon that starts again, loses its lease, and follows.
 */
#include "cluster/sidecar.h"

#include "../test.h"
#include "base/mem.h"
#include "sidecar_rig.h"

#include <stdio.h>
#include <string.h>

TEST(what_was_held_at_the_same_epoch_is_served_at_once_after_a_start)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(rig.state[0], SLOT_SERVED);
    assert_int_equal(rig.state[5460], SLOT_SERVED);
    rig_fini(&rig);
    mem_free(file);
}

TEST(what_was_held_at_another_epoch_is_asked_for_first)
{
    struct holdings *file = rig_file(RIG_A, 0);
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(rig.state[0], SLOT_HELD);
    rig_tick(&rig, 50);
    rig_answer_survey(&rig, NULL, NULL, RIG_C); /* who never held them */
    rig_tick(&rig, 150);
    rig_answer_survey(&rig, NULL, NULL, RIG_C);
    rig_tick(&rig, 100);
    assert_int_equal(rig.state[0], SLOT_HELD); /* C may have a lease yet */
    rig_tick(&rig, 300);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_SERVED);
    rig_fini(&rig);
    mem_free(file);
}

/* It is kept, as what nobody follows, until the owners' daemons have it. */
TEST(what_was_held_beside_another_node_is_not_served)
{
    struct holdings *file = rig_file(RIG_B, 1);
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(rig.state[0], SLOT_HELD);
    assert_string_equal(rig.kept.node, RIG_A);
    assert_int_equal(rig.kept.held[0], 2);
    assert_string_equal(rig.kept.follows,
                        "0000000000000000000000000000000000000000");
    rig_fini(&rig);
    mem_free(file);
}

TEST(after_a_lease_that_ran_out_the_epoch_decides)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    sidecar_lapsed(rig.sidecar, rig.now_ms);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(rig.state[0], SLOT_SERVED); /* nobody else had them */
    sidecar_lapsed(rig.sidecar, rig.now_ms);
    rig_poll(
        &rig, RIG_A
        " 10.0.0.1:7000@17000 myself,master - 0 0 8 connected 0-5460\n" RIG_B
        " 10.0.0.2:7001@17001 master - 0 1 2 connected 5461-10922\n");
    assert_int_equal(rig.state[0], SLOT_HELD);
    rig_fini(&rig);
    mem_free(file);
}

/* A node that gains slots has a new epoch, and goes on serving its others. One
 * that has a new epoch without them may have been replaced and promoted again
 * between two polls. */
TEST(after_a_rise_of_the_epoch_alone_a_survey_decides)
{
    static const char gained[] = RIG_A
        " 10.0.0.1:7000@17000 myself,master - 0 0 8 connected 0-5461\n" RIG_B
        " 10.0.0.2:7001@17001 master - 0 1 2 connected 5462-10922\n";
    static const char risen[] = RIG_A
        " 10.0.0.1:7000@17000 myself,master - 0 0 9 connected 0-5461\n" RIG_B
        " 10.0.0.2:7001@17001 master - 0 1 2 connected 5462-10922\n";
    struct holdings *file = rig_file(RIG_A, 1);
    struct holdings *newer = mem_zalloc(sizeof(*newer));
    const struct slot_set granted = { .bits[85] = (uint64_t)1 << 21 };
    const struct sidecar_answer fenced = { .kind = SIDECAR_FENCED,
                                           .granted = &granted };
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    rig_poll(&rig, gained);
    assert_int_equal(rig.state[0], SLOT_SERVED);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &fenced);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[5461], SLOT_SERVED);
    assert_int_equal(rig.kept.held[0], 9);
    rig_poll(&rig, risen);
    assert_int_equal(rig.state[0], SLOT_HELD);
    newer->held[0] = newer->known[0] = 9; /* epoch 8, as we have */
    newer->held[1] = newer->known[1] = 9 + 1;
    rig_tick(&rig, 50);
    rig_answer_survey(&rig, RIG_B, newer, NULL);
    rig_tick(&rig, 150);
    rig_answer_survey(&rig, RIG_B, newer, NULL);
    rig_tick(&rig, 100);
    assert_int_equal(rig.state[0], SLOT_SERVED);
    assert_int_equal(rig.kept.held[0], 10);
    assert_int_not_equal(rig.state[1], SLOT_SERVED);
    rig_fini(&rig);
    mem_free(newer);
    mem_free(file);
}

/* Asks all others, and waits as long as C may have a lease. */
static void
survey_and_wait(struct rig *rig)
{
    rig_tick(rig, 50);
    rig_answer_survey(rig, NULL, NULL, RIG_C); /* who never held them */
    rig_tick(rig, 150);
    rig_answer_survey(rig, NULL, NULL, RIG_C);
    rig_tick(rig, 400);
    rig_tick(rig, 50);
}

/* The nodes change while the disk gets what A claims; then it has that. */
static void
change_while_a_claim_is_kept(struct rig *rig, const char *nodes)
{
    struct holdings *file = rig_file(RIG_A, 0);

    rig_init(rig, file);
    mem_free(file);
    rig_poll(rig, RIG_NODES);
    rig->disk_fails = true;
    survey_and_wait(rig);
    assert_int_equal(rig->state[0], SLOT_HELD); /* the disk has it not yet */
    rig_poll(rig, nodes);
    rig->disk_fails = false;
    rig_tick(rig, 50);
}

/* Nothing else looks at the epoch again before the next change of the nodes. */
TEST(after_a_rise_of_the_epoch_while_a_claim_is_kept_a_survey_decides)
{
    struct rig rig;

    change_while_a_claim_is_kept(
        &rig, RIG_A
        " 10.0.0.1:7000@17000 myself,master - 0 0 9 connected 0-5460\n" RIG_B
        " 10.0.0.2:7001@17001 master - 0 1 2 connected 5461-10922\n" RIG_C
        " 10.0.0.3:7002@17002 master - 0 1 3 connected 10923-16383\n");
    assert_int_equal(rig.state[0], SLOT_HELD);
    survey_and_wait(&rig);
    assert_int_equal(rig.state[0], SLOT_SERVED);
    assert_int_equal(rig.kept.held[0], 10);
    rig_fini(&rig);
}

/* With slots that it gains, the epoch of a node rises each time. */
TEST(a_claim_that_is_kept_needs_no_survey_when_our_node_gains_slots)
{
    struct rig rig;

    change_while_a_claim_is_kept(
        &rig, RIG_A
        " 10.0.0.1:7000@17000 myself,master - 0 0 9 connected 0-5461\n" RIG_B
        " 10.0.0.2:7001@17001 master - 0 1 2 connected 5462-10922\n" RIG_C
        " 10.0.0.3:7002@17002 master - 0 1 3 connected 10923-16383\n");
    assert_int_equal(rig.state[0], SLOT_SERVED);
    assert_int_equal(rig.kept.held[0], 10);
    rig_fini(&rig);
}

TEST(what_was_lost_without_a_lease_is_not_served_any_more)
{
    static const char moved[] = RIG_A
        " 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 4-5460\n" RIG_B
        " 10.0.0.2:7001@17001 master - 0 1 5 connected 0-3 5461-10922\n";
    struct holdings *file = rig_file(RIG_A, 1);
    struct rig rig;

    rig_init(&rig, file);
    rig.unleased = true;
    rig_poll(&rig, RIG_NODES); /* the node was stopped, and knows nothing yet */
    assert_int_equal(rig.state[0], SLOT_SERVED);
    rig_poll(&rig, moved);
    assert_int_equal(rig.state[0], SLOT_HELD);
    assert_int_equal(rig.state[4], SLOT_SERVED);
    rig_fini(&rig);
    mem_free(file);
}

TEST(a_daemon_that_leads_follows_when_its_slots_were_taken)
{
    static const char demoted[] = RIG_A
        " 10.0.0.1:7000@17000 myself,slave " RIG_R " 0 0 9 connected\n" RIG_R
        " 10.0.0.4:7003@17003 master - 0 1 9 connected 0-5460\n";
    struct holdings *file = rig_file(RIG_A, 1);
    struct holdings *of_r = mem_zalloc(sizeof(*of_r));
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(rig.follows, -1);
    rig_poll(&rig, demoted);
    rig_tick(&rig, 2000);
    assert_int_equal(rig.follows, -1); /* R still takes what we have */
    for (unsigned slot = 0; slot <= 5460; slot++) {
        of_r->held[slot] = 10;
    }
    rig_answer_survey(&rig, RIG_R, of_r, NULL);
    rig_tick(&rig, 100);
    rig_answer_survey(&rig, RIG_R, of_r, NULL);
    rig_tick(&rig, 100);
    assert_int_equal(rig.follows, 1);
    rig_fini(&rig);
    mem_free(file);
    mem_free(of_r);
}
