/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots on their way from another daemon, and the role of one that was
 * promoted.
 */
#include "../test.h"
#include "base/mem.h"
#include "cluster/sidecar_times.h"
#include "sidecar_rig.h"

#include <stdio.h>
#include <string.h>

/* B's slots 5461 and 5462 have moved to A, whose epoch is 9 now. */
#define MOVED                                                                  \
    RIG_A                                                                      \
    " 10.0.0.1:7000@17000 myself,master - 0 0 9 connected 0-5462\n" RIG_B      \
    " 10.0.0.2:7001@17001 master - 0 1 2 connected 5463-10922\n" RIG_C         \
    " 10.0.0.3:7002@17002 master - 0 1 3 connected 10923-16383\n" RIG_R        \
    " 10.0.0.4:7003@17003 slave " RIG_A " 0 1 9 connected\n"

static void
begin_with_all_of(struct rig *rig)
{
    rig_poll(rig, RIG_NODES);
    for (int round = 0; round < 4; round++) {
        rig_tick(rig, 150);
        rig_answer_survey(rig, NULL, NULL, NULL);
    }
    rig_tick(rig, 100);
    assert_int_equal(rig->state[0], SLOT_SERVED);
    rig_poll(rig, MOVED);
    assert_int_equal(rig->state[5460], SLOT_SERVED);
}

static void
begin_with_all(struct rig *rig)
{
    rig_init(rig, NULL);
    begin_with_all_of(rig);
    assert_int_equal(rig->state[5461], SLOT_HELD); /* B is being asked */
}

static const struct sidecar_answer has_keys = { .kind = SIDECAR_HAS_KEYS };

TEST(slots_without_keys_are_served_at_once)
{
    const struct slot_set granted = { .bits[85] = (uint64_t)3 << 21 };
    const struct sidecar_answer fenced = { .kind = SIDECAR_FENCED,
                                           .granted = &granted };
    struct rig rig;

    begin_with_all(&rig);
    assert_true(slot_set_has(&granted, 5461) && slot_set_has(&granted, 5462));
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &fenced);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[5461], SLOT_SERVED);
    assert_int_equal(rig.kept.held[5462], 10);
    assert_false(rig.pulls);
    rig_fini(&rig);
}

TEST(slots_with_keys_are_fetched_then_fenced_then_served)
{
    const struct slot_set granted = { .bits[85] = (uint64_t)3 << 21 };
    struct sidecar_answer fenced = { .kind = SIDECAR_FENCED,
                                     .granted = &granted,
                                     .position = 123 };
    struct rig rig;

    begin_with_all(&rig);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &has_keys);
    assert_true(rig.pulls);
    assert_string_equal(rig.pulled_from, RIG_B);
    assert_int_equal(slot_set_count(&rig.pulled), 2);
    assert_int_equal(rig.state[5461], SLOT_PULLED);
    assert_int_equal(rig.source[5461],
                     topology_find(rig.topology, slice_of(RIG_B)));
    sidecar_pull_is_near(rig.sidecar, rig.now_ms);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[5461], SLOT_HELD);
    rig.disk_fails = true;
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE, &fenced);
    assert_int_equal(rig.until, 123);
    sidecar_pull_ended(rig.sidecar, true, "", rig.now_ms);
    rig_tick(&rig, 1000);
    assert_int_equal(rig.state[5461], SLOT_HELD); /* until the disk has it */
    rig.disk_fails = false;
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[5461], SLOT_SERVED);
    rig_fini(&rig);
}

/* The source goes on until our disk knows of the claim. */
TEST(a_source_is_not_fenced_while_our_disk_is_full)
{
    struct rig rig;

    begin_with_all(&rig);
    rig.disk_fails = true;
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &has_keys);
    sidecar_pull_is_near(rig.sidecar, rig.now_ms);
    rig_tick(&rig, 50);
    rig_answer_survey(&rig, NULL, NULL, NULL);
    rig_tick(&rig, 500);
    assert_int_equal(rig.state[5461], SLOT_PULLED);
    assert_true(slot_set_has(&rig.kept.claimed, 5461));
    rig.disk_fails = false;
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[5461], SLOT_HELD);
    assert_int_equal(rig.ask[rig.asks - 1].question, SIDECAR_ASK_FENCE);
    rig_fini(&rig);
}

/* The first question fences a slot without keys, before our disk knows of the
 * claim: nothing can be lost. Such a slot waits for our disk, as writes to our
 * other slots do. If we start again meanwhile, B still holds it, and knows that
 * it was claimed. */
TEST(a_slot_without_keys_waits_for_our_disk)
{
    const struct slot_set granted = { .bits[85] = (uint64_t)3 << 21 };
    const struct sidecar_answer fenced = { .kind = SIDECAR_FENCED,
                                           .granted = &granted };
    struct holdings *file = rig_file(RIG_A, 9);
    struct holdings *of_b = rig_file(RIG_B, 2);
    struct rig rig;

    begin_with_all(&rig);
    rig.disk_fails = true;
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &fenced);
    rig_tick(&rig, 1000);
    assert_int_equal(rig.state[5461], SLOT_HELD);
    rig.disk_fails = false;
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[5461], SLOT_SERVED);
    rig_fini(&rig);

    memset(of_b->held, 0, sizeof(of_b->held));
    of_b->held[5461] = of_b->held[5462] = 3;
    of_b->known[5461] = of_b->known[5462] = 10;
    rig_init(&rig, file);
    rig_poll(&rig, MOVED);
    for (int round = 0; round < 2; round++) { /* the first one raises `known` */
        rig_tick(&rig, 150);
        rig_answer_survey(&rig, RIG_B, of_b, NULL);
    }
    assert_int_equal(rig.state[0], SLOT_SERVED);
    assert_int_equal(rig.ask[rig.asks - 1].known, 10);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &fenced);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[5461], SLOT_SERVED);
    assert_int_equal(rig.kept.held[5462], 10);
    rig_fini(&rig);
    mem_free(file);
    mem_free(of_b);
}

/* A replica may have been the best holder while the slots passed to B. */
TEST(clients_are_sent_to_the_last_owner_though_a_survey_has_found_a_copy)
{
    struct holdings *of_r = mem_zalloc(sizeof(*of_r));
    struct rig rig;

    of_r->held[5461] = of_r->held[5462] = 3;
    (void)snprintf(of_r->follows, sizeof(of_r->follows), "%s", RIG_B);
    rig_init(&rig, NULL);
    rig_poll(&rig, RIG_NODES);
    for (int round = 0; round < 4; round++) {
        rig_tick(&rig, 150);
        rig_answer_survey(&rig, RIG_R, of_r, NULL);
    }
    rig_tick(&rig, 100);
    rig_poll(&rig, MOVED);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &has_keys);
    assert_true(rig.pulls);
    assert_int_equal(rig.state[5461], SLOT_PULLED);
    sidecar_pull_ended(rig.sidecar, false, "B is gone", rig.now_ms);
    rig.pulls = false;
    for (int round = 0; round < 10; round++) { /* until B may be dead */
        rig_tick(&rig, 150);
        rig_answer_survey(&rig, RIG_R, of_r, RIG_B);
    }
    rig_answer(&rig, RIG_R, SIDECAR_ASK_FENCE_EMPTY, &has_keys);
    assert_true(rig.pulls);
    assert_int_equal(rig.state[5461], SLOT_HELD); /* a replica serves nobody */
    mem_free(of_r);
    rig_fini(&rig);
}

TEST(a_source_whose_link_broke_is_asked_again_before_clients_are_sent_there)
{
    const struct slot_set granted = { .bits[85] = (uint64_t)3 << 21 };
    const struct sidecar_answer silent = { .kind = SIDECAR_SILENT,
                                           .reason = "refused" };
    const struct sidecar_answer fenced = { .kind = SIDECAR_FENCED,
                                           .granted = &granted,
                                           .position = 7 };
    struct rig rig;

    begin_with_all(&rig);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &has_keys);
    sidecar_pull_broke(rig.sidecar, rig.now_ms);
    assert_int_equal(rig.state[5461], SLOT_HELD);
    sidecar_pull_broke(rig.sidecar, rig.now_ms); /* one question is enough */
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &has_keys);
    assert_int_equal(rig.state[5461], SLOT_PULLED);
    assert_true(rig.pulls);
    sidecar_pull_broke(rig.sidecar, rig.now_ms); /* and its keys are gone */
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &fenced);
    assert_int_equal(rig.until, 7);
    sidecar_pull_ended(rig.sidecar, true, "", rig.now_ms);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[5461], SLOT_SERVED);
    rig_fini(&rig);

    begin_with_all(&rig);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &has_keys);
    sidecar_pull_broke(rig.sidecar, rig.now_ms);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &silent);
    assert_false(rig.pulls);
    assert_int_equal(rig.state[5461], SLOT_HELD);
    sidecar_pull_broke(rig.sidecar, rig.now_ms); /* of nothing */
    rig_fini(&rig);

    begin_with_all(&rig);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &has_keys);
    rig.disk_fails = true;
    sidecar_pull_is_near(rig.sidecar, rig.now_ms);
    assert_int_equal(rig.state[5461], SLOT_PULLED);
    sidecar_pull_broke(rig.sidecar, rig.now_ms);
    rig_tick(&rig, 10);
    assert_int_equal(rig.state[5461], SLOT_HELD);
    rig_fini(&rig);
}

TEST(a_pull_that_fails_begins_again_from_whom_a_survey_finds)
{
    struct holdings *holdings = mem_zalloc(sizeof(*holdings));
    struct rig rig;
    bool asked = false;

    holdings->held[5461] = holdings->held[5462] = 3;
    begin_with_all(&rig);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &has_keys);
    sidecar_pull_ended(rig.sidecar, false, "no memory", rig.now_ms);
    assert_int_equal(rig.state[5461], SLOT_HELD);
    for (int round = 0; round < 6; round++) {
        rig_tick(&rig, 150);
        rig_answer_survey(&rig, RIG_B, holdings, NULL);
        for (size_t i = 0; i < rig.asks; i++) {
            asked = asked || rig.ask[i].question == SIDECAR_ASK_FENCE_EMPTY;
        }
    }
    assert_true(asked);
    mem_free(holdings);
    rig_fini(&rig);
}

/* The source may have stopped the slots, and its answer is late. */
TEST(a_fence_without_an_answer_is_repeated_and_the_copy_goes_on)
{
    const struct slot_set granted = { .bits[85] = (uint64_t)3 << 21 };
    const struct sidecar_answer silent = { .kind = SIDECAR_SILENT,
                                           .reason = "it is silent" };
    const struct sidecar_answer fenced = { .kind = SIDECAR_FENCED,
                                           .granted = &granted,
                                           .position = 123 };

    for (int lasts = 0; lasts < 2; lasts++) {
        struct rig rig;
        int rounds = 0;

        begin_with_all(&rig);
        rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &has_keys);
        sidecar_pull_is_near(rig.sidecar, rig.now_ms);
        do {
            rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE, &silent);
            rig_tick(&rig, 110);
        } while (rig.pulls && ++rounds < (lasts == 1 ? 100 : 2));
        if (lasts == 0) {
            rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE, &fenced);
            assert_int_equal(rig.until, 123);
        } else {
            assert_false(rig.pulls); /* it begins anew, with a survey */
        }
        rig_fini(&rig);
    }
}

TEST(slots_that_move_on_are_given_up)
{
    struct rig rig;

    begin_with_all(&rig);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &has_keys);
    assert_true(rig.pulls);
    rig_poll(&rig, RIG_NODES);
    assert_false(rig.pulls);
    rig_tick(&rig, 250); /* until B knows */
    assert_int_equal(rig.state[5461], SLOT_AWAY);
    rig_fini(&rig);
}

/* Keys may have come before the pull is near, and stay when a claim fails. They
 * go when the server of the slots' owner holds them. */
TEST(copies_of_slots_that_move_on_are_deleted_unless_they_come_back)
{
    enum { BEGUN, NEAR, FAILED, COMES_BACK };

    for (int when = BEGUN; when <= COMES_BACK; when++) {
        struct holdings *of_b = rig_file(RIG_B, 2);
        struct rig rig;

        begin_with_all(&rig);
        rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &has_keys);
        if (when == NEAR) {
            sidecar_pull_is_near(rig.sidecar, rig.now_ms);
        } else if (when == FAILED) {
            sidecar_pull_ended(rig.sidecar, false, "a reason", rig.now_ms);
        }
        rig_tick(&rig, 50);
        rig_poll(&rig, RIG_NODES);
        assert_true(!rig.pulls || when == FAILED);
        rig_tick(&rig, SIDECAR_FORGET_MS + 2000);
        rig_answer_survey(&rig, RIG_B, of_b, NULL);
        rig_tick(&rig, SIDECAR_FORGET_MS + 100);
        assert_true(slot_set_is_empty(&rig.dropped)); /* B does not hold them */
        of_b->held[5461] = of_b->held[5462] = 3;
        rig_answer_survey(&rig, RIG_B, of_b, NULL);
        rig_tick(&rig, 50);
        rig_poll(&rig, when == COMES_BACK ? MOVED : RIG_NODES);
        rig_tick(&rig, SIDECAR_FORGET_MS - 100);
        assert_true(slot_set_is_empty(&rig.dropped));
        rig_poll(&rig, RIG_NODES); /* before anything has come */
        rig_answer_survey(&rig, RIG_B, of_b, NULL);
        rig_tick(&rig, 200);
        assert_int_equal(slot_set_count(&rig.dropped),
                         when == COMES_BACK ? 0 : 2);
        assert_true(when == COMES_BACK || slot_set_has(&rig.dropped, 5461));
        rig_tick(&rig, SIDECAR_FORGET_MS + 100);
        assert_int_equal(slot_set_count(&rig.dropped), 2);
        mem_free(of_b);
        rig_fini(&rig);
    }
}

TEST(a_refused_fence_gives_up_the_claim_and_tries_again)
{
    const struct sidecar_answer refused = { .kind = SIDECAR_REFUSED,
                                            .reason = "not now" };
    struct holdings *holdings = mem_zalloc(sizeof(*holdings));
    struct rig rig;

    holdings->held[5461] = holdings->held[5462] = 3;
    rig_init(&rig, NULL);
    begin_with_all_of(&rig);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &has_keys);
    sidecar_pull_is_near(rig.sidecar, rig.now_ms);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE, &refused);
    assert_false(rig.pulls);
    for (int round = 0; round < 6 && !rig.pulls; round++) {
        rig_tick(&rig, 150);
        for (size_t i = 0; i < rig.asks; i++) {
            if (rig.ask[i].question == SIDECAR_ASK_FENCE_EMPTY) {
                rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &has_keys);
            }
        }
        rig_answer_survey(&rig, RIG_B, holdings, NULL);
    }
    assert_true(rig.pulls);
    assert_true(slot_set_has(&rig.pulled, 5462));
    assert_int_equal(slot_set_count(&rig.pulled), 2);
    mem_free(holdings);
    rig_fini(&rig);
}

TEST(old_keys_of_a_slot_that_came_without_keys_are_not_served)
{
    const struct slot_set granted = { .bits[85] = (uint64_t)3 << 21 };
    const struct sidecar_answer fenced = { .kind = SIDECAR_FENCED,
                                           .granted = &granted,
                                           .position = 9 };
    struct rig rig;

    begin_with_all(&rig);
    slot_set_add(&rig.leftover, 5461);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &fenced);
    assert_true(rig.pulls);
    assert_int_equal(rig.until, 9);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[5461], SLOT_HELD);
    sidecar_pull_ended(rig.sidecar, true, "", rig.now_ms);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[5461], SLOT_SERVED);
    rig_fini(&rig);
}

/* R is promoted in the place of A. */
#define R_FOLLOWS                                                              \
    RIG_A " 10.0.0.1:7000@17000 master - 0 0 1 connected 0-5460\n" RIG_R       \
          " 10.0.0.4:7003@17003 myself,slave " RIG_A " 0 1 1 connected\n"
#define R_LEADS                                                                \
    RIG_A " 10.0.0.1:7000@17000 slave " RIG_R " 0 0 9 connected\n" RIG_R       \
          " 10.0.0.4:7003@17003 myself,master - 0 1 9 connected 0-5460\n"

static void
copy_all_of(struct rig *rig, struct holdings *of_a)
{
    const struct slot_set owned = { .bits[0] = 0xff };
    struct sidecar_answer answer = { .kind = SIDECAR_HOLDS,
                                     .holdings = of_a,
                                     .position = 50 };

    holdings_set(of_a, &owned, 2);
    rig_poll(rig, R_FOLLOWS);
    assert_int_equal(rig->follows, 0);
    rig_tick(rig, 50);
    memcpy(answer.history, rig->history, sizeof(answer.history));
    rig->position = 49;
    while (rig->asks > 0) {
        rig_answer(rig, RIG_A, SIDECAR_ASK_HOLDINGS, &answer);
    }
    assert_int_equal(rig->state[0], SLOT_AWAY); /* a change is missing */
    rig->position = 50;
    rig_tick(rig, 50);
    assert_int_equal(rig->state[0], SLOT_SERVED); /* to READONLY clients */
    assert_int_equal(rig->state[8], SLOT_AWAY);
}

static void
copy_all(struct rig *rig, struct holdings *of_a)
{
    rig_init(rig, NULL);
    copy_all_of(rig, of_a);
}

/* R leads without slots, and gains one of A's. */
#define R_IS_NEW                                                               \
    RIG_A " 10.0.0.1:7000@17000 master - 0 0 1 connected 0-5460\n" RIG_R       \
          " 10.0.0.4:7003@17003 myself,master - 0 1 7 connected\n"
#define R_GAINS                                                                \
    RIG_A " 10.0.0.1:7000@17000 master - 0 0 1 connected 0-5459\n" RIG_R       \
          " 10.0.0.4:7003@17003 myself,master - 0 1 8 connected 5460\n"

/* The old leader grants nothing to a question about another epoch. */
TEST(a_replica_takes_over_though_it_claimed_slots_of_its_own_before)
{
    struct holdings *of_a = mem_zalloc(sizeof(*of_a));
    const struct rig_ask *asked;
    struct rig rig;

    rig_init(&rig, NULL);
    rig_poll(&rig, R_IS_NEW);
    rig_poll(&rig, R_GAINS);
    asked = &rig.ask[rig.asks - 1];
    assert_int_equal(asked->question, SIDECAR_ASK_FENCE_EMPTY);
    assert_int_equal(asked->known, 2);
    rig.asks = 0; /* A does not answer before R follows it */
    copy_all_of(&rig, of_a);
    rig_poll(&rig, R_LEADS);
    asked = &rig.ask[rig.asks - 1];
    assert_int_equal(asked->question, SIDECAR_ASK_HAND_OFF);
    assert_int_equal(asked->known, 0);
    assert_false(asked->surveyed);
    mem_free(of_a);
    rig_fini(&rig);
}

TEST(a_replica_takes_over_when_it_has_all_that_its_leader_had)
{
    const struct slot_set granted = { .bits[0] = 0xff };
    struct holdings *of_a = mem_zalloc(sizeof(*of_a));
    struct sidecar_answer fenced = { .kind = SIDECAR_FENCED,
                                     .granted = &granted,
                                     .position = 60 };
    struct rig rig;

    copy_all(&rig, of_a);
    memcpy(fenced.history, rig.history, sizeof(fenced.history));
    rig_poll(&rig, R_LEADS);
    assert_int_equal(rig.state[0], SLOT_HELD);
    rig_answer(&rig, RIG_A, SIDECAR_ASK_HAND_OFF, &fenced);
    rig.position = 59;
    rig_tick(&rig, 50);
    assert_int_equal(rig.follows, 0);
    rig.position = 60;
    rig_tick(&rig, 50);
    assert_int_equal(rig.follows, -1);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_SERVED);
    assert_int_equal(rig.kept.held[7], 10);
    assert_int_equal(rig.kept.follows[0], '\0');
    mem_free(of_a);
    rig_fini(&rig);
}

/* B's daemon may have taken the slots over without a word to A's. */
TEST(a_replica_asks_all_if_another_node_owned_the_slots_meanwhile)
{
    static const char b_leads[] =
        RIG_A " 10.0.0.1:7000@17000 slave " RIG_B " 0 0 8 connected\n" RIG_B
              " 10.0.0.2:7001@17001 master - 0 1 8 connected 0-5460\n" RIG_R
              " 10.0.0.4:7003@17003 myself,slave " RIG_B " 0 1 8 connected\n";
    const struct slot_set granted = { .bits[0] = 0xff };
    struct holdings *of_a = mem_zalloc(sizeof(*of_a));
    struct holdings *of_b = rig_file(RIG_B, 8);
    struct sidecar_answer fenced = { .kind = SIDECAR_FENCED,
                                     .granted = &granted,
                                     .position = 50 };
    struct rig rig;

    copy_all(&rig, of_a);
    slot_set_add(&rig.leftover, 0); /* it waits for B's daemon to take them */
    rig_poll(&rig, b_leads);
    rig_poll(&rig, R_LEADS);
    memcpy(fenced.history, rig.history, sizeof(fenced.history));
    rig_answer(&rig, RIG_A, SIDECAR_ASK_HAND_OFF, &fenced);
    rig_tick(&rig, 50);
    assert_int_equal(rig.follows, 0);
    for (int round = 0; round < 2; round++) {
        rig_answer_survey(&rig, RIG_A, of_b, NULL);
        rig_tick(&rig, 150);
    }
    assert_int_equal(rig.follows, -1);
    assert_int_not_equal(rig.state[0], SLOT_SERVED);
    assert_int_equal(rig.kept.held[0], 2);
    mem_free(of_a);
    mem_free(of_b);
    rig_fini(&rig);
}

/* It may have less of the log than the leader that it did not fence, until its
 * disk has the claim. */
TEST(a_replica_waits_for_the_lease_of_a_silent_leader)
{
    const struct sidecar_answer silent = { .kind = SIDECAR_SILENT,
                                           .reason = "it is silent" };
    struct holdings *of_a = mem_zalloc(sizeof(*of_a));
    struct rig rig;

    copy_all(&rig, of_a);
    rig_poll(&rig, R_LEADS);
    rig_answer(&rig, RIG_A, SIDECAR_ASK_HAND_OFF, &silent);
    for (int round = 0; round < 8; round++) {
        assert_int_equal(rig.follows, 0);
        rig_tick(&rig, 50);
        rig_answer_survey(&rig, NULL, NULL, RIG_A);
    }
    rig.disk_fails = true;
    for (int round = 0; round < 8; round++) {
        rig_tick(&rig, 50);
        rig_answer_survey(&rig, NULL, NULL, RIG_A);
    }
    assert_int_equal(rig.follows, -1);
    assert_int_equal(sidecar_holdings(rig.sidecar)->held[0], 2);
    assert_int_equal(sidecar_holdings(rig.sidecar)->copied[0], 51);
    rig.disk_fails = false;
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_SERVED);
    assert_int_equal(sidecar_holdings(rig.sidecar)->held[0], 10);
    assert_int_equal(sidecar_holdings(rig.sidecar)->copied[0], 0);
    mem_free(of_a);
    rig_fini(&rig);
}

static bool
is_asked(const struct rig *rig, const char *node,
         enum sidecar_question question)
{
    for (size_t i = 0; i < rig->asks; i++) {
        if (rig->ask[i].question == question &&
            strcmp(rig->ask[i].node, node) == 0) {
            return true;
        }
    }
    return false;
}

/* R's node was a replica of B's for a while, and C has more of A's log. */
#define R_OF_B                                                                 \
    RIG_A " 10.0.0.1:7000@17000 master - 0 0 1 connected 0-5460\n" RIG_B       \
          " 10.0.0.2:7001@17001 master - 0 1 4 connected\n" RIG_C              \
          " 10.0.0.3:7002@17002 slave " RIG_A " 0 1 1 connected\n" RIG_R       \
          " 10.0.0.4:7003@17003 myself,slave " RIG_B " 0 1 4 connected\n"
#define R_IN_PLACE_OF_A                                                        \
    RIG_A " 10.0.0.1:7000@17000 slave " RIG_R " 0 0 9 connected\n" RIG_B       \
          " 10.0.0.2:7001@17001 master - 0 1 4 connected\n" RIG_C              \
          " 10.0.0.3:7002@17002 slave " RIG_R " 0 1 9 connected\n" RIG_R       \
          " 10.0.0.4:7003@17003 myself,master - 0 1 9 connected 0-5460\n"

TEST(a_copy_that_was_left_behind_gives_way_to_a_longer_one)
{
    const struct sidecar_answer silent = { .kind = SIDECAR_SILENT,
                                           .reason = "it is silent" };
    static const enum sidecar_question asked[] = { SIDECAR_ASK_HAND_OFF,
                                                   SIDECAR_ASK_FENCE_EMPTY };
    struct holdings *of_a = mem_zalloc(sizeof(*of_a));
    struct holdings *of_c = mem_zalloc(sizeof(*of_c));
    struct rig rig;

    copy_all(&rig, of_a);
    (void)snprintf(of_a->node, sizeof(of_a->node), "%s", RIG_A);
    memcpy(of_c->held, of_a->held, sizeof(of_c->held));
    for (unsigned slot = 0; slot < 8; slot++) {
        of_c->copied[slot] = 61;
    }
    rig_poll(&rig, R_OF_B);
    for (int round = 0; round < 4; round++) {
        rig_tick(&rig, 1200);
        rig_answer_survey(&rig, RIG_A, of_a, NULL);
    }
    assert_int_equal(rig.follows, 1);
    rig_poll(&rig, R_IN_PLACE_OF_A);
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 2; i++) {
            if (is_asked(&rig, RIG_A, asked[i])) {
                rig_answer(&rig, RIG_A, asked[i], &silent);
            }
        }
        rig_tick(&rig, 50);
        rig_answer_survey(&rig, RIG_C, of_c, RIG_A);
        assert_int_not_equal(rig.state[0], SLOT_SERVED);
    }
    assert_int_equal(rig.follows, -1);
    assert_int_equal(rig.kept.copied[0], 51);
    assert_true(is_asked(&rig, RIG_C, SIDECAR_ASK_FENCE_EMPTY));
    mem_free(of_a);
    mem_free(of_c);
    rig_fini(&rig);
}

/* A held two slots that R's node does not own. What others have of A's log may
 * be longer than the copy here. */
TEST(what_a_promoted_replica_does_not_own_stays_a_copy)
{
    static const char b_owns[] =
        RIG_A " 10.0.0.1:7000@17000 slave " RIG_R " 0 0 9 connected\n" RIG_B
              " 10.0.0.2:7001@17001 master - 0 1 10 connected 0-1\n" RIG_R
              " 10.0.0.4:7003@17003 myself,master - 0 1 9 connected 2-5460\n";
    const struct slot_set granted = { .bits[0] = 0xfc };
    struct holdings *of_a = mem_zalloc(sizeof(*of_a));
    struct sidecar_answer fenced = { .kind = SIDECAR_FENCED,
                                     .granted = &granted,
                                     .position = 50 };
    struct rig rig;

    copy_all(&rig, of_a);
    memcpy(fenced.history, rig.history, sizeof(fenced.history));
    rig_poll(&rig, b_owns);
    rig_answer(&rig, RIG_A, SIDECAR_ASK_HAND_OFF, &fenced);
    rig_tick(&rig, 100);
    assert_int_equal(rig.follows, -1);
    assert_int_equal(rig.kept.follows[0], '\0');
    assert_int_equal(rig.kept.held[1], 2);
    assert_int_equal(rig.kept.copied[1], 51);
    assert_int_equal(rig.kept.held[2], 10);
    assert_int_equal(rig.kept.copied[2], 0);
    mem_free(of_a);
    rig_fini(&rig);
}

/* It was silent for less than a lease, and has one. */
TEST(a_leader_that_answers_again_is_fenced_at_once)
{
    const struct sidecar_answer silent = { .kind = SIDECAR_SILENT,
                                           .reason = "it is silent" };
    struct holdings *of_a = mem_zalloc(sizeof(*of_a));
    struct sidecar_answer fenced = { .kind = SIDECAR_REFUSED,
                                     .reason = "not now" };
    struct rig rig;

    copy_all(&rig, of_a);
    rig_poll(&rig, R_LEADS);
    rig_answer(&rig, RIG_A, SIDECAR_ASK_HAND_OFF, &silent);
    rig_tick(&rig, 50);
    rig_answer_survey(&rig, RIG_A, of_a, NULL);
    rig_tick(&rig, 50);
    rig_answer_survey(&rig, RIG_A, of_a, NULL);
    rig_tick(&rig, 50);
    rig_answer(&rig, RIG_A, SIDECAR_ASK_HAND_OFF, &fenced); /* it was asked */
    assert_int_equal(rig.follows, 0);
    rig_fini(&rig);
    mem_free(of_a);
}

TEST(a_replica_leads_without_a_leader_whose_node_is_forgotten)
{
    static const char forgotten[] =
        RIG_R " 10.0.0.4:7003@17003 myself,master - 0 1 9 connected 0-5460\n";
    const struct sidecar_answer silent = { .kind = SIDECAR_SILENT,
                                           .reason = "it has no address" };
    struct holdings *of_a = mem_zalloc(sizeof(*of_a));
    struct rig rig;

    copy_all(&rig, of_a);
    rig_poll(&rig, forgotten);
    rig_answer(&rig, RIG_A, SIDECAR_ASK_HAND_OFF, &silent);
    rig_tick(&rig, 400);
    assert_int_equal(rig.follows, 0);
    rig_tick(&rig, 300);
    assert_int_equal(rig.follows, -1);
    assert_int_equal(rig.state[0], SLOT_SERVED);
    mem_free(of_a);
    rig_fini(&rig);
}
