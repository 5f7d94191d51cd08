/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a daemon that has just started finds out about slots of its node.
 */
#include "../test.h"
#include "base/mem.h"
#include "cluster/sidecar_state.h"
#include "sidecar_rig.h"

#include <stdio.h>
#include <string.h>

static struct holdings *
held_at(unsigned slot, uint64_t epoch)
{
    struct holdings *holdings = mem_zalloc(sizeof(*holdings));

    holdings->held[slot] = epoch + 1;
    return holdings;
}

TEST(slots_that_nobody_ever_held_are_served_when_all_have_said_so)
{
    struct rig rig;

    rig_init(&rig, NULL);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(rig.follows, -1);
    assert_int_equal(rig.state[0], SLOT_HELD);
    assert_int_equal(rig.state[16383], SLOT_AWAY);
    rig_tick(&rig, 50);
    rig_answer_survey(&rig, NULL, NULL, RIG_C);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_MISSING); /* C may have them */
    rig_tick(&rig, 100);
    rig_answer_survey(&rig, NULL, NULL, NULL);
    rig_tick(&rig, 100);
    assert_int_equal(rig.state[0], SLOT_SERVED);
    assert_int_equal(rig.kept.held[5460], 2); /* at epoch 1 */
    assert_int_equal(rig.kept.held[5461], 0);
    rig_fini(&rig);
}

TEST(a_slot_that_was_held_once_and_is_not_any_more_is_missing)
{
    struct holdings *holdings = mem_zalloc(sizeof(*holdings));
    struct rig rig;

    holdings->known[7] = 3;
    rig_init(&rig, NULL);
    rig_poll(&rig, RIG_NODES);
    for (int round = 0; round < 4; round++) {
        rig_tick(&rig, 150);
        rig_answer_survey(&rig, RIG_B, holdings, NULL);
    }
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[7], SLOT_MISSING);
    assert_int_equal(rig.state[8], SLOT_SERVED);
    mem_free(holdings);
    rig_fini(&rig);
}

/* As RIG_NODES, but no daemon holds slots at a higher epoch than A's node. */
#define RISEN                                                                  \
    RIG_A                                                                      \
    " 10.0.0.1:7000@17000 myself,master - 0 0 9 connected 0-5460\n" RIG_B      \
    " 10.0.0.2:7001@17001 master - 0 1 2 connected 5461-10922\n" RIG_C         \
    " 10.0.0.3:7002@17002 master - 0 1 3 connected 10923-16383\n" RIG_R        \
    " 10.0.0.4:7003@17003 slave " RIG_A " 0 1 9 connected\n"

/* Surveys in which C answers this, and all others that, until a daemon is asked
 * for slot 3: it must be C. */
static void
check_asks_c(const struct sidecar_answer *of_c,
             const struct sidecar_answer *others)
{
    struct rig rig;
    size_t asked = 0;

    rig_init(&rig, NULL);
    rig_poll(&rig, RISEN);
    for (int round = 0; round < 8 && asked == 0; round++) {
        rig_tick(&rig, 150);
        while (rig.asks > 0 && rig.ask[0].question == SIDECAR_ASK_HOLDINGS) {
            bool is_c = strcmp(rig.ask[0].node, RIG_C) == 0;

            rig_answer(&rig, rig.ask[0].node, SIDECAR_ASK_HOLDINGS,
                       is_c ? of_c : others);
        }
        for (size_t i = 0; i < rig.asks; i++) {
            if (rig.ask[i].question == SIDECAR_ASK_FENCE_EMPTY) {
                assert_string_equal(rig.ask[i].node, RIG_C);
                assert_true(rig.ask[i].surveyed);
                assert_int_equal(rig.ask[i].known, 7);
                assert_int_equal(slot_set_count(&rig.ask[i].set), 1);
                asked++;
            }
        }
    }
    assert_int_equal(asked, 1);
    rig_fini(&rig);
}

TEST(the_holder_with_the_highest_epoch_is_asked)
{
    struct holdings *old = held_at(3, 4);
    struct holdings *newest = held_at(3, 6);
    const struct sidecar_answer of_c = { .kind = SIDECAR_HOLDS,
                                         .holdings = newest };
    const struct sidecar_answer others = { .kind = SIDECAR_HOLDS,
                                           .holdings = old };

    check_asks_c(&of_c, &others);
    mem_free(old);
    mem_free(newest);
}

TEST(of_two_copies_the_longer_one_is_asked)
{
    struct holdings *copy = held_at(3, 6);
    struct sidecar_answer of_c = { .kind = SIDECAR_HOLDS, .holdings = copy };
    struct sidecar_answer others = of_c;

    (void)snprintf(copy->follows, sizeof(copy->follows), "%s", RIG_A);
    of_c.position = 200;
    others.position = 100;
    check_asks_c(&of_c, &others);
    mem_free(copy);
}

/* C's server leads, and its log has gone on. */
TEST(a_copy_whose_server_leads_counts_up_to_where_it_was_a_copy)
{
    struct holdings *copy = held_at(3, 6);
    struct holdings *leads = held_at(3, 6);
    struct sidecar_answer of_c = { .kind = SIDECAR_HOLDS,
                                   .holdings = leads,
                                   .position = 900 };
    struct sidecar_answer others = { .kind = SIDECAR_HOLDS,
                                     .holdings = copy,
                                     .position = 100 };

    (void)snprintf(copy->follows, sizeof(copy->follows), "%s", RIG_A);
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        leads->copied[slot] = leads->held[slot] != 0 ? 151 : 0;
    }
    check_asks_c(&of_c, &others);
    of_c.holdings = copy;
    of_c.position = 200;
    others.holdings = leads;
    check_asks_c(&of_c, &others);
    mem_free(copy);
    mem_free(leads);
}

/* A has lost its file, not its log: R, which follows it, has nothing that is
 * not here. */
TEST(a_copy_of_our_own_log_is_not_fetched)
{
    struct holdings *copy = rig_file(RIG_R, 1);
    struct rig rig;

    rig_init(&rig, NULL);
    (void)snprintf(copy->follows, sizeof(copy->follows), "%s", RIG_A);
    rig_poll(&rig, RIG_NODES);
    for (int round = 0; round < 20; round++) {
        struct sidecar_answer of_r = { .kind = SIDECAR_HOLDS,
                                       .holdings = copy,
                                       .position = rig.position };

        memcpy(of_r.history, rig.history, sizeof(of_r.history));
        while (rig.asks > 0 && strcmp(rig.ask[0].node, RIG_R) != 0) {
            rig_answer_survey(&rig, NULL, NULL, NULL);
        }
        if (rig.asks > 0) {
            rig_answer(&rig, RIG_R, SIDECAR_ASK_HOLDINGS, &of_r);
        }
        rig_tick(&rig, 100);
    }
    assert_false(rig.pulls);
    assert_int_equal(rig.state[7], SLOT_SERVED);
    assert_int_equal(rig.kept.held[7], 2);
    rig_fini(&rig);
    mem_free(copy);
}

/* Serves all slots of A, and has heard all daemons. */
static void
begin_at_rest(struct rig *rig)
{
    rig_init(rig, NULL);
    rig_poll(rig, RIG_NODES);
    for (int round = 0; round < 4; round++) {
        rig_tick(rig, 150);
        rig_answer_survey(rig, NULL, NULL, NULL);
    }
    rig_tick(rig, 100);
    assert_int_equal(rig->state[5460], SLOT_SERVED);
    for (int round = 0; round < 2; round++) {
        rig_tick(rig, 1200);
        rig_answer_survey(rig, NULL, NULL, NULL);
    }
}

static const struct sidecar_answer same = { .kind = SIDECAR_SAME };

TEST(at_rest_daemons_are_asked_what_has_changed)
{
    struct rig rig;

    begin_at_rest(&rig);
    for (int round = 0; round < 3; round++) {
        rig_tick(&rig, 1200);
        assert_int_equal(rig.asks, 3);
        assert_int_equal(rig.ask[0].seen, 1);
        rig_answer(&rig, RIG_B, SIDECAR_ASK_HOLDINGS, &same);
        rig_answer(&rig, RIG_C, SIDECAR_ASK_HOLDINGS, &same);
        rig_answer(&rig, RIG_R, SIDECAR_ASK_HOLDINGS, &same);
        assert_int_equal(rig.asks, 0);
    }
    assert_true(rig.sidecar->survey.complete);
    assert_int_equal(rig.state[5460], SLOT_SERVED);
    rig_poll(&rig, RIG_NODES); /* another topology: all is asked again */
    rig_tick(&rig, 1200);
    assert_int_equal(rig.ask[0].seen, 0);
    rig_fini(&rig);
}

TEST(when_one_has_changed_the_others_are_asked_for_all_in_the_same_round)
{
    struct holdings *changed = held_at(9000, 3);
    const struct sidecar_answer of_b = { .kind = SIDECAR_HOLDS,
                                         .holdings = changed,
                                         .version = 7 };
    struct holdings *none = mem_zalloc(sizeof(*none));
    const struct sidecar_answer whole = { .kind = SIDECAR_HOLDS,
                                          .holdings = none,
                                          .version = 1 };
    struct rig rig;
    uint64_t rounds;

    begin_at_rest(&rig);
    rounds = rig.sidecar->survey.rounds;
    rig_tick(&rig, 1200);
    rig_answer(&rig, RIG_C, SIDECAR_ASK_HOLDINGS, &same);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_HOLDINGS, &of_b);
    rig_answer(&rig, RIG_R, SIDECAR_ASK_HOLDINGS, &same);
    assert_int_equal(rig.sidecar->survey.rounds, rounds);
    assert_int_equal(rig.asks, 2);
    assert_int_equal(rig.ask[0].seen, 0);
    rig_answer(&rig, RIG_C, SIDECAR_ASK_HOLDINGS, &whole);
    rig_answer(&rig, RIG_R, SIDECAR_ASK_HOLDINGS, &whole);
    assert_int_equal(rig.sidecar->survey.rounds, rounds + 1);
    assert_int_equal(rig.sidecar->survey.found[9000].epoch, 4);
    rig_tick(&rig, 1200);
    assert_int_equal(rig.ask[0].seen, 7);
    mem_free(changed);
    mem_free(none);
    rig_fini(&rig);
}

/* A daemon of version 1.0.0 refuses the question. */
TEST(a_daemon_that_only_tells_all_is_asked_for_all)
{
    const struct sidecar_answer refused = { .kind = SIDECAR_REFUSED,
                                            .reason = "wrong number" };
    struct rig rig;

    begin_at_rest(&rig);
    rig_tick(&rig, 1200);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_HOLDINGS, &refused);
    rig_answer(&rig, RIG_C, SIDECAR_ASK_HOLDINGS, &same);
    rig_answer(&rig, RIG_R, SIDECAR_ASK_HOLDINGS, &same);
    assert_int_equal(rig.asks, 3);
    rig_answer_survey(&rig, NULL, NULL, NULL);
    assert_true(rig.sidecar->survey.complete);
    rig_tick(&rig, 1200);
    assert_string_equal(rig.ask[0].node, RIG_B);
    assert_int_equal(rig.ask[0].seen, 0);
    assert_int_equal(rig.ask[1].seen, 1);
    rig_fini(&rig);
}

TEST(rounds_slow_down_while_a_slot_stays_missing)
{
    struct holdings *holdings = mem_zalloc(sizeof(*holdings));
    struct rig rig;
    uint64_t rounds;

    holdings->known[7] = 3;
    rig_init(&rig, NULL);
    rig_poll(&rig, RIG_NODES);
    for (int tick = 0; tick < 200; tick++) {
        rig_tick(&rig, 50);
        rig_answer_survey(&rig, RIG_B, holdings, NULL);
    }
    assert_int_equal(rig.state[7], SLOT_MISSING);
    rounds = rig.sidecar->survey.rounds;
    for (int tick = 0; tick < 100; tick++) {
        rig_tick(&rig, 50);
        rig_answer_survey(&rig, RIG_B, holdings, NULL);
    }
    assert_in_range(rig.sidecar->survey.rounds - rounds, 3, 6);
    mem_free(holdings);
    rig_fini(&rig);
}
