/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots that other daemons claim.
 */
#include "cluster/sidecar_give.h"

#include "../test.h"
#include "base/mem.h"
#include "cluster/sidecar_state.h"
#include "sidecar_rig.h"

#include <stdio.h>
#include <string.h>

static struct sidecar_answer
fence(struct rig *rig, const char *node, uint64_t epoch, bool empty,
      enum sidecar_question question, struct slot_set *granted)
{
    const struct slot_set set = { .bits[0] = 0xf };
    const struct sidecar_ask ask = {
        .question = question, .node = node, .set = &set, .epoch = epoch
    };

    return sidecar_fence(rig->sidecar, &ask, true, empty, granted, rig->now_ms);
}

/* The same of a daemon whose survey has found that nobody knows more than this.
 */
static struct sidecar_answer
fence_surveyed(struct rig *rig, const char *node, uint64_t known,
               enum sidecar_question question)
{
    const struct slot_set set = { .bits[0] = 0xf };
    const struct sidecar_ask ask = { .question = question,
                                     .node = node,
                                     .set = &set,
                                     .epoch = 5,
                                     .surveyed = true,
                                     .known = known };
    struct slot_set granted;

    return sidecar_fence(rig->sidecar, &ask, true, false, &granted,
                         rig->now_ms);
}

TEST(a_fence_stops_the_slots_and_no_others)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct slot_set granted;
    struct rig rig;
    struct sidecar_answer answer;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    answer = fence(&rig, RIG_B, 1, false, SIDECAR_ASK_FENCE, &granted);
    assert_int_equal(answer.kind, SIDECAR_REFUSED); /* of our own epoch */
    answer = fence(&rig, RIG_B, 5, false, SIDECAR_ASK_FENCE_EMPTY, &granted);
    assert_int_equal(answer.kind, SIDECAR_HAS_KEYS);
    assert_int_equal(rig.state[0], SLOT_SERVED);
    answer = fence(&rig, RIG_B, 5, true, SIDECAR_ASK_FENCE_EMPTY, &granted);
    assert_int_equal(answer.kind, SIDECAR_FENCED);
    assert_int_equal(slot_set_count(&granted), 4);
    assert_int_equal(rig.state[3], SLOT_HELD); /* our node has not lost them */
    assert_int_equal(rig.state[4], SLOT_SERVED);
    answer = fence(&rig, RIG_C, 4, true, SIDECAR_ASK_FENCE, &granted);
    assert_int_equal(answer.kind, SIDECAR_REFUSED); /* B has the higher one */
    answer = fence(&rig, RIG_B, 5, false, SIDECAR_ASK_FENCE, &granted);
    assert_int_equal(answer.kind, SIDECAR_FENCED); /* our answer was lost */
    assert_int_equal(slot_set_count(&granted), 4);
    answer = fence(&rig, "5", 9, true, SIDECAR_ASK_FENCE, &granted);
    assert_int_equal(answer.kind, SIDECAR_REFUSED); /* who is that? */
    rig_fini(&rig);
    mem_free(file);
}

/* The fence was written before its answer left. */
TEST(a_fence_outlasts_a_restart)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct holdings *kept = mem_alloc(sizeof(*kept));
    struct slot_set granted;
    struct rig rig;
    struct sidecar_answer answer;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    answer = fence(&rig, RIG_B, 5, true, SIDECAR_ASK_FENCE_EMPTY, &granted);
    assert_int_equal(answer.kind, SIDECAR_FENCED);
    assert_int_equal(answer.ticket, rig.tickets);
    *kept = rig.kept;
    rig_fini(&rig);
    rig_init(&rig, kept);
    rig_poll(&rig, RIG_NODES); /* its node has not heard of B's claim */
    assert_int_equal(rig.state[3], SLOT_HELD);
    assert_int_equal(rig.state[4], SLOT_SERVED);
    for (int round = 0; round < 3; round++) { /* B does not hold them */
        rig_tick(&rig, 150);
        rig_answer_survey(&rig, NULL, NULL, NULL);
    }
    rig_tick(&rig, 150);
    assert_int_equal(rig.state[3], SLOT_SERVED);
    sidecar_lapsed(rig.sidecar, rig.now_ms);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(rig.state[3], SLOT_SERVED); /* that was settled */
    rig_fini(&rig);
    mem_free(file);
    mem_free(kept);
}

TEST(a_slot_that_is_fenced_while_it_is_claimed_is_not_served)
{
    struct holdings *file = rig_file(RIG_A, 0);
    struct rig rig;

    rig_init(&rig, file);
    rig.disk_fails = true;
    rig_poll(&rig, RIG_NODES);
    for (int round = 0; round < 4; round++) {
        rig_tick(&rig, 150);
        rig_answer_survey(&rig, NULL, NULL, NULL);
    }
    assert_int_equal(rig.kept.held[0], 2); /* on its way to the disk */
    assert_int_equal(rig.state[0], SLOT_HELD);
    assert_int_equal(fence_surveyed(&rig, RIG_C, 1, SIDECAR_ASK_FENCE).kind,
                     SIDECAR_FENCED);
    rig.disk_fails = false;
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_HELD);
    assert_int_equal(rig.state[4], SLOT_SERVED);
    rig_fini(&rig);
    mem_free(file);
}

TEST(a_slot_that_has_come_back_may_be_given_away_at_once)
{
    const struct slot_set set = { .bits[0] = 0xf };
    struct holdings *file = rig_file(RIG_A, 1);
    struct slot_set granted;
    struct rig rig;
    struct sidecar_answer answer;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    answer = fence(&rig, RIG_B, 5, true, SIDECAR_ASK_FENCE_EMPTY, &granted);
    assert_int_equal(answer.kind, SIDECAR_FENCED);
    answer = fence(&rig, RIG_C, 9, true, SIDECAR_ASK_FENCE_EMPTY, &granted);
    assert_int_equal(answer.kind, SIDECAR_REFUSED);
    holdings_set(rig.sidecar->own, &set, 7 + 1);
    sidecar_serve(rig.sidecar, &set);
    answer = fence(&rig, RIG_C, 9, true, SIDECAR_ASK_FENCE_EMPTY, &granted);
    assert_int_equal(answer.kind, SIDECAR_FENCED);
    rig_fini(&rig);
    mem_free(file);
}

/* The slots belong to C, at epoch 7: B, with 5, is late. */
TEST(an_owner_that_another_one_has_followed_gets_nothing)
{
    static const char of_b[] = RIG_A
        " 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 4-5460\n" RIG_B
        " 10.0.0.2:7001@17001 master - 0 1 5 connected 0-3 5461-10922\n" RIG_C
        " 10.0.0.3:7002@17002 master - 0 1 3 connected 10923-16383\n";
    static const char of_c[] = RIG_A
        " 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 4-5460\n" RIG_B
        " 10.0.0.2:7001@17001 master - 0 1 5 connected 5461-10922\n" RIG_C
        " 10.0.0.3:7002@17002 master - 0 1 7 connected 0-3 10923-16383\n";
    struct holdings *file = rig_file(RIG_A, 1);
    struct slot_set granted;
    struct rig rig;
    struct sidecar_answer answer;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    rig_poll(&rig, of_b);
    answer = fence(&rig, RIG_B, 5, false, SIDECAR_ASK_FENCE_EMPTY, &granted);
    assert_int_equal(answer.kind, SIDECAR_HAS_KEYS);
    rig_poll(&rig, of_b);
    assert_int_equal(rig.state[0], SLOT_EXPORTED);
    rig_poll(&rig, of_c);
    assert_int_equal(rig.state[0], SLOT_HELD); /* C has not come yet */
    answer = fence(&rig, RIG_B, 5, false, SIDECAR_ASK_FENCE_EMPTY, &granted);
    assert_int_equal(answer.kind, SIDECAR_REFUSED);
    rig_tick(&rig, 600);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_HELD); /* it would send them back */
    rig_tick(&rig, 1300);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_AWAY); /* for so long at most */
    rig_fini(&rig);

    /* C comes before our node knows, and sends clients here. */
    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    rig_poll(&rig, of_b);
    answer = fence(&rig, RIG_C, 7, false, SIDECAR_ASK_FENCE_EMPTY, &granted);
    assert_int_equal(answer.kind, SIDECAR_HAS_KEYS);
    rig_poll(&rig, of_c);
    assert_int_equal(rig.state[0], SLOT_EXPORTED);
    rig_fini(&rig);
    mem_free(file);
}

/* B owns 0-3 at epoch 5. */
#define GIVEN                                                                  \
    RIG_A                                                                      \
    " 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 4-5460\n" RIG_B      \
    " 10.0.0.2:7001@17001 master - 0 1 5 connected 0-3 5461-10922\n"

#define DEMOTED                                                                \
    RIG_A                                                                      \
    " 10.0.0.1:7000@17000 myself,slave " RIG_B " 0 0 5 connected\n" RIG_B      \
    " 10.0.0.2:7001@17001 master - 0 1 5 connected 0-10922\n"

/* A gives slots 0-3 to B, and knows that B holds them. */
static void
give(struct rig *rig)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct slot_set granted;

    rig_init(rig, file);
    rig_poll(rig, RIG_NODES);
    rig_poll(rig, GIVEN);
    assert_int_equal(rig->state[0], SLOT_LEAVING);
    rig_tick(rig, 250);
    assert_int_equal(rig->state[0], SLOT_HELD); /* B may not know yet */
    assert_int_equal(
        fence(rig, RIG_B, 5, false, SIDECAR_ASK_FENCE, &granted).kind,
        SIDECAR_FENCED);
    assert_int_equal(rig->state[0], SLOT_AWAY);
    rig_tick(rig, 50);
    rig_answer_survey(rig, RIG_B, of_b, NULL);
    rig_tick(rig, 50);
    assert_int_equal(rig->kept.held[0], 2); /* B does not hold them yet */
    of_b->held[0] = of_b->held[1] = of_b->held[2] = of_b->held[3] = 6;
    rig_tick(rig, 2000);
    rig_answer_survey(rig, RIG_B, of_b, NULL);
    rig_tick(rig, 50);
    assert_int_equal(rig->kept.held[0], 0);
    assert_int_equal(rig->kept.held[4], 2);
    assert_true(slot_set_is_empty(&rig->dropped));
    mem_free(file);
    mem_free(of_b);
}

TEST(slots_are_forgotten_when_their_owner_holds_them_and_dropped_later)
{
    struct rig rig;

    give(&rig);
    rig_tick(&rig, 11000);
    assert_int_equal(slot_set_count(&rig.dropped), 4);
    rig_fini(&rig);
}

TEST(a_daemon_that_follows_keeps_the_keys_of_what_it_forgot_when_it_led)
{
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct slot_set b_has = { { 0 } };
    struct rig rig;

    give(&rig);
    slot_set_add_range(&b_has, 0, 10922);
    holdings_set(of_b, &b_has, 6);
    rig_poll(&rig, DEMOTED);
    rig_tick(&rig, 2000);
    rig_answer_survey(&rig, RIG_B, of_b, NULL);
    rig_tick(&rig, 50);
    assert_int_equal(rig.follows, 1);
    rig_tick(&rig, 11000);
    assert_true(slot_set_is_empty(&rig.dropped));
    rig_fini(&rig);
    mem_free(of_b);
}

/* The slots come back, and B has no keys. */
static void
take_back(struct rig *rig)
{
    const struct slot_set set = { .bits[0] = 0xf };
    const struct sidecar_answer fenced = { .kind = SIDECAR_FENCED,
                                           .granted = &set };

    rig_poll(rig, RIG_NODES);
    rig_answer(rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &fenced);
    rig_tick(rig, 50);
    assert_int_equal(rig->state[0], SLOT_SERVED);
}

TEST(an_owner_that_comes_before_our_node_knows_is_not_awaited_later)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct slot_set granted;
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(
        fence(&rig, RIG_B, 5, false, SIDECAR_ASK_FENCE_EMPTY, &granted).kind,
        SIDECAR_HAS_KEYS);
    assert_int_equal(rig.state[0], SLOT_SERVED); /* as our node says */
    rig_poll(&rig, GIVEN);
    assert_int_equal(rig.state[0], SLOT_EXPORTED);
    rig_tick(&rig, 400);
    assert_int_equal(rig.state[0], SLOT_EXPORTED);
    take_back(&rig);
    rig_poll(&rig, GIVEN); /* once more, and nobody has come */
    assert_int_equal(rig.state[0], SLOT_LEAVING);
    rig_fini(&rig);
    mem_free(file);
}

TEST(a_start_waits_for_the_owner_of_what_it_holds)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, GIVEN);
    assert_int_equal(rig.state[0], SLOT_HELD);
    assert_int_equal(rig.state[5461], SLOT_AWAY); /* never held */
    assert_int_equal(
        fence_surveyed(&rig, RIG_B, 2, SIDECAR_ASK_FENCE_EMPTY).kind,
        SIDECAR_HAS_KEYS);
    assert_int_equal(rig.state[0], SLOT_EXPORTED);
    rig_fini(&rig);

    rig_init(&rig, file); /* B has had it */
    memcpy(of_b->node, RIG_B, sizeof(of_b->node));
    for (unsigned slot = 0; slot < 4; slot++) {
        of_b->held[slot] = of_b->known[slot] = 6;
    }
    rig_poll(&rig, GIVEN);
    rig_tick(&rig, 50);
    rig_answer_survey(&rig, RIG_B, of_b, NULL);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_AWAY);
    rig_fini(&rig);

    rig_init(&rig, file); /* nobody comes */
    rig_poll(&rig, GIVEN);
    for (int i = 0; i < 4; i++) {
        rig_tick(&rig, 500);
        rig_answer_survey(&rig, NULL, NULL, NULL);
    }
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_AWAY);
    rig_fini(&rig);
    mem_free(of_b);
    mem_free(file);
}

/* Likewise, but A loses 0-1 first, and 2-3 later. */
#define GIVEN_FIRST                                                            \
    RIG_A                                                                      \
    " 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 2-5460\n" RIG_B      \
    " 10.0.0.2:7001@17001 master - 0 1 5 connected 0-1 5461-10922\n"

TEST(each_lost_slot_is_served_for_as_long_as_the_first)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    rig_poll(&rig, GIVEN_FIRST);
    assert_int_equal(rig.leaving_until_ms, rig.now_ms + 250);
    rig_tick(&rig, 200);
    rig_poll(&rig, GIVEN);
    assert_int_equal(rig.leaving_until_ms, rig.now_ms + 50);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_HELD);
    assert_int_equal(rig.state[2], SLOT_LEAVING);
    assert_int_equal(rig.leaving_until_ms, rig.now_ms + 200);
    rig_tick(&rig, 150);
    assert_int_equal(rig.state[2], SLOT_LEAVING);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[2], SLOT_HELD);
    rig_fini(&rig);
    mem_free(file);
}

TEST(clients_are_not_sent_to_an_owner_whose_daemon_may_send_them_back)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct slot_set granted;
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    rig_tick(&rig, 50);
    rig_answer_survey(&rig, NULL, NULL, NULL);
    rig_poll(&rig, GIVEN);
    rig_tick(&rig, 300);
    rig_answer_survey(&rig, NULL, NULL, NULL);
    rig_tick(&rig, 1650);
    assert_int_equal(rig.state[0], SLOT_HELD); /* B is there */
    assert_int_equal(
        fence(&rig, RIG_B, 5, false, SIDECAR_ASK_FENCE_EMPTY, &granted).kind,
        SIDECAR_HAS_KEYS);
    assert_int_equal(rig.state[0], SLOT_EXPORTED);
    take_back(&rig);
    rig_poll(&rig, GIVEN);
    rig_tick(&rig, 1950);
    rig_answer_survey(&rig, NULL, NULL, NULL);
    assert_int_equal(rig.state[0], SLOT_HELD);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_EXPORTED); /* for so long at most */
    rig_fini(&rig);

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    rig_poll(&rig, GIVEN);
    rig_tick(&rig, 250);
    rig_answer_survey(&rig, NULL, NULL, NULL); /* from before */
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_HELD);
    rig_answer_survey(&rig, NULL, NULL, RIG_B);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_EXPORTED); /* B is not there */
    rig_fini(&rig);

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    sidecar_lapsed(rig.sidecar, rig.now_ms);
    rig_poll(&rig, GIVEN);
    assert_int_equal(rig.state[0], SLOT_HELD); /* it was not served */
    of_b->held[0] = 6;
    rig_tick(&rig, 50);
    rig_answer_survey(&rig, RIG_B, of_b, NULL);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_AWAY); /* B has it since long */
    assert_int_equal(rig.state[1], SLOT_HELD);
    rig_fini(&rig);
    mem_free(file);
    mem_free(of_b);
}

TEST(a_slot_that_is_lost_before_it_is_held_sends_nobody_back_at_once)
{
    struct rig rig;

    rig_init(&rig, NULL);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(rig.state[0], SLOT_HELD);
    rig_poll(&rig, GIVEN);
    rig_tick(&rig, 200);
    assert_int_equal(rig.state[0], SLOT_HELD); /* B may not know yet */
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_AWAY);
    rig_fini(&rig);
}

/* The first key came between the look and the fence: B, which was refused, has
 * surveyed and asks again. Clients that it sends here are served. */
TEST(
    slots_that_were_fenced_as_empty_serve_those_who_are_sent_once_they_have_keys)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct slot_set granted;
    struct rig rig;
    struct sidecar_answer answer;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    rig_poll(&rig, RIG_A " 10.0.0.1:7000@17000 myself,master - 0 0 1 connected "
                         "4-5460\n" RIG_B
                         " 10.0.0.2:7001@17001 master - 0 1 5 connected 0-3 "
                         "5461-10922\n");
    answer = fence(&rig, RIG_B, 5, true, SIDECAR_ASK_FENCE_EMPTY, &granted);
    assert_int_equal(answer.kind, SIDECAR_FENCED);
    assert_int_not_equal(rig.state[3], SLOT_EXPORTED);
    answer = fence_surveyed(&rig, RIG_B, 6, SIDECAR_ASK_FENCE_EMPTY);
    assert_int_equal(answer.kind, SIDECAR_HAS_KEYS);
    assert_int_equal(rig.state[3], SLOT_EXPORTED);
    answer = fence_surveyed(&rig, RIG_B, 6, SIDECAR_ASK_FENCE);
    assert_int_equal(answer.kind, SIDECAR_FENCED);
    assert_int_not_equal(rig.state[3], SLOT_EXPORTED);
    rig_fini(&rig);
    mem_free(file);
}

/* B has come for slots 0 to 3, but our lease has ended since, and they are
 * served anew: B's server may have started again, too. */
TEST(who_came_before_a_lapse_has_not_come)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct slot_set granted;
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(
        fence(&rig, RIG_B, 5, false, SIDECAR_ASK_FENCE_EMPTY, &granted).kind,
        SIDECAR_HAS_KEYS);
    sidecar_lapsed(rig.sidecar, rig.now_ms);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(rig.state[3], SLOT_SERVED);
    rig_poll(
        &rig, RIG_A
        " 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 4-5460\n" RIG_B
        " 10.0.0.2:7001@17001 master - 0 1 5 connected 0-3\n");
    assert_int_equal(rig.state[3], SLOT_LEAVING);
    rig_fini(&rig);
    mem_free(file);
}

/* R follows A, whose directory was removed, and which fetches slots 0 to 3 from
 * R. Another replica may have copied A's new log before R does. */
TEST(a_copy_that_its_leader_has_fetched_is_older_than_others)
{
    static const char follows[] =
        RIG_A " 10.0.0.1:7000@17000 master - 0 0 1 connected 0-5460\n" RIG_R
              " 10.0.0.4:7003@17003 myself,slave " RIG_A " 0 1 1 connected\n";
    const struct slot_set set = { .bits[0] = 0xf };
    const struct sidecar_ask ask = { .question = SIDECAR_ASK_FENCE,
                                     .node = RIG_A,
                                     .set = &set,
                                     .epoch = 1,
                                     .surveyed = true,
                                     .known = 2 };
    struct holdings *file = rig_file(RIG_R, 1);
    struct holdings *of_a = mem_zalloc(sizeof(*of_a));
    struct slot_set granted;
    struct rig rig;

    memcpy(file->follows, RIG_A, sizeof(file->follows));
    (void)snprintf(file->history, sizeof(file->history), "%040d", 1);
    rig_init(&rig, file);
    rig_poll(&rig, follows);
    rig_answer_survey(&rig, RIG_A, of_a, NULL);
    assert_int_equal(
        sidecar_fence(rig.sidecar, &ask, true, false, &granted, rig.now_ms)
            .kind,
        SIDECAR_FENCED);
    for (int round = 0; round < 2; round++) {
        rig_tick(&rig, 150);
        rig_answer_survey(&rig, RIG_A, of_a, NULL);
    }
    assert_int_equal(rig.kept.copied[0], 0); /* A may die before it has it */
    of_a->held[0] = of_a->held[4] = 2;
    rig_tick(&rig, 150);
    rig_answer_survey(&rig, RIG_A, of_a, NULL);
    assert_int_equal(rig.kept.held[0], 2);
    assert_int_equal(rig.kept.copied[0], 1);
    assert_int_equal(rig.kept.copied[1], 0); /* it is the only one */
    assert_int_equal(rig.kept.copied[4], 0); /* it was not fetched */
    rig_fini(&rig);
    mem_free(file);
    mem_free(of_a);
}

/* ---- ways from phase to phase that no simulated world takes ---------------
 */

/* What the rig's nodes say when others than A, which is myself, own slots. */
#define A_OWNS(slots)                                                          \
    RIG_A " 10.0.0.1:7000@17000 myself,master - 0 0 1 connected " slots "\n"
#define B_OWNS(slots)                                                          \
    RIG_B " 10.0.0.2:7001@17001 master - 0 1 5 connected " slots "\n"
#define C_OWNS(slots)                                                          \
    RIG_C " 10.0.0.3:7002@17002 master - 0 1 6 connected " slots "\n"

static unsigned
entered(const struct rig *rig, enum slot_phase from, enum slot_phase to)
{
    return rig->sidecar->entered[from][to];
}

/* Nobody owns slots 0 to 3 for a while: DELSLOTS, and ADDSLOTS. */
TEST(a_slot_that_nobody_has_owned_comes_back)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    rig_poll(&rig, A_OWNS("4-5460"));
    assert_int_equal(rig.state[0], SLOT_LEAVING);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(entered(&rig, PHASE_LEAVING, PHASE_WANTED), 4);
    assert_int_equal(rig.state[0], SLOT_SERVED); /* nobody was in between */
    rig_poll(&rig, A_OWNS("4-5460"));
    rig_tick(&rig, 300);
    assert_int_equal(rig.state[0], SLOT_EXPORTED);
    rig_poll(&rig, A_OWNS("4-5460") C_OWNS("0-3"));
    assert_int_equal(entered(&rig, PHASE_EXPORTED, PHASE_AWAITED), 4);
    assert_int_equal(rig.state[0], SLOT_HELD); /* C may not know it yet */
    rig_poll(&rig, A_OWNS("4-5460"));
    assert_int_equal(rig.state[0], SLOT_EXPORTED);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(entered(&rig, PHASE_EXPORTED, PHASE_WANTED), 4);
    rig_fini(&rig);
    mem_free(file);
}

/* It was never held here. */
TEST(a_wanted_slot_that_is_lost_comes_back)
{
    struct rig rig;

    rig_init(&rig, NULL);
    rig_poll(&rig, RIG_NODES);
    rig_poll(&rig, A_OWNS("4-5460"));
    assert_int_equal(entered(&rig, PHASE_WANTED, PHASE_AWAITED), 4);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(entered(&rig, PHASE_AWAITED, PHASE_WANTED), 4);
    assert_int_equal(rig.state[0], SLOT_HELD);
    rig_fini(&rig);
}

TEST(a_slot_that_was_given_and_passed_comes_back)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct slot_set granted;
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(
        fence(&rig, RIG_B, 5, false, SIDECAR_ASK_FENCE_EMPTY, &granted).kind,
        SIDECAR_HAS_KEYS);
    rig_poll(&rig, A_OWNS("4-5460") C_OWNS("0-3") B_OWNS("5461"));
    assert_int_equal(entered(&rig, PHASE_SPOKEN, PHASE_PASSED), 4);
    rig_poll(&rig, A_OWNS("4-5460"));
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(entered(&rig, PHASE_PASSED, PHASE_WANTED), 4);
    rig_fini(&rig);
    mem_free(file);
}

/* B's daemon claims slots 0 to 3, of which A has a copy, and C owns them. */
TEST(a_missing_slot_may_be_given_and_pass)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct rig rig;

    file->known[0] = file->known[1] = file->known[2] = file->known[3] = 4;
    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    for (int round = 0; round < 6; round++) {
        rig_tick(&rig, 150);
        rig_answer_survey(&rig, NULL, NULL, RIG_C);
    }
    assert_int_equal(rig.state[0], SLOT_MISSING);
    assert_int_equal(fence_surveyed(&rig, RIG_B, 4, SIDECAR_ASK_FENCE).kind,
                     SIDECAR_FENCED);
    assert_int_equal(rig.state[0], SLOT_MISSING);
    rig_poll(&rig, A_OWNS("4-5460") C_OWNS("0-3") B_OWNS("5461"));
    assert_int_equal(entered(&rig, PHASE_MISSING, PHASE_PASSED), 4);
    assert_int_equal(rig.state[0], SLOT_HELD);
    rig_fini(&rig);
    mem_free(file);
}

/* A gains slot 0 from C and 1 to 4 from B. While C is asked for that one, B's
 * daemon fences what A has of the others. */
TEST(a_slot_with_a_source_may_be_given)
{
    struct holdings *file = rig_file(RIG_A, 0);
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, A_OWNS("5-5460") C_OWNS("0") B_OWNS("1-4"));
    rig_poll(&rig, A_OWNS("0-5460") B_OWNS("5461") C_OWNS("5462"));
    assert_int_equal(entered(&rig, PHASE_FOUND, PHASE_CLAIMED), 1);
    assert_int_equal(fence_surveyed(&rig, RIG_B, 2, SIDECAR_ASK_FENCE).kind,
                     SIDECAR_FENCED);
    assert_int_equal(entered(&rig, PHASE_FOUND, PHASE_WANTED), 3);
    rig_fini(&rig);
    mem_free(file);
}
