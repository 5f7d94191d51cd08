/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is here goes only when others have it.
 */
#include "cluster/sidecar_wait.h"

#include "../test.h"
#include "base/mem.h"
#include "cluster/sidecar_give.h"
#include "cluster/sidecar_state.h"
#include "sidecar_rig.h"

#include <stdio.h>
#include <string.h>

/* The node of A has become a replica of B, which owns its slots. */
#define EMPTIED                                                                \
    RIG_A " 10.0.0.1:7000@17000 myself,slave " RIG_B                           \
          " 0 0 9 connected\n" RIG_B                                           \
          " 10.0.0.2:7001@17001 master - 0 1 9 connected 0-10922\n"

/* Begins as a daemon that waits: slots with keys are left. */
static void
begin(struct rig *rig, const struct holdings *file)
{
    rig_init(rig, file);
    slot_set_add(&rig->leftover, 7);
    if (file->follows[0] == '\0') {
        rig_poll(rig, RIG_NODES);
    }
    rig_poll(rig, EMPTIED);
    rig_tick(rig, 50);
}

/* Has the daemon of B answer two surveys. */
static void
answer(struct rig *rig, const struct holdings *of_b)
{
    for (int round = 0; round < 2; round++) {
        rig_answer_survey(rig, RIG_B, of_b, NULL);
        rig_tick(rig, 1200);
    }
}

static bool
follows_b(const struct rig *rig)
{
    return rig->follows == 1;
}

static struct holdings *
held_by_b(uint64_t epoch)
{
    return rig_file(RIG_B, epoch);
}

TEST(a_leader_waits_for_as_long_as_its_successor_needs)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct holdings *of_b = held_by_b(9);
    struct rig rig;

    begin(&rig, file);
    rig_tick(&rig, 120000);
    answer(&rig, NULL);
    assert_false(follows_b(&rig));
    assert_int_equal(slot_set_count(&rig.sidecar->waiting), 5461);
    slot_set_add(&of_b->claimed, 7); /* not on its disk yet */
    answer(&rig, of_b);
    assert_false(follows_b(&rig));
    assert_int_equal(slot_set_count(&rig.sidecar->waiting), 1);
    slot_set_remove(&of_b->claimed, 7);
    answer(&rig, of_b);
    assert_true(follows_b(&rig));
    assert_int_equal(slot_set_count(&rig.sidecar->waiting), 0);
    rig_fini(&rig);
    mem_free(file);
    mem_free(of_b);
}

/* B's server may have lost them meanwhile. */
TEST(what_a_survey_said_before_is_asked_again)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct holdings *of_b = held_by_b(9);
    struct rig rig;

    rig_init(&rig, file);
    slot_set_add(&rig.leftover, 7);
    rig_poll(&rig, RIG_NODES);
    answer(&rig, of_b);
    rig_poll(&rig, EMPTIED);
    assert_false(follows_b(&rig));
    answer(&rig, of_b);
    assert_true(follows_b(&rig));
    rig_fini(&rig);
    mem_free(file);
    mem_free(of_b);
}

TEST(slots_without_keys_hold_nobody_back_for_long)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct rig rig;

    begin(&rig, file);
    memset(&rig.leftover, 0, sizeof(rig.leftover));
    answer(&rig, NULL);
    assert_false(follows_b(&rig));
    rig_tick(&rig, 5000);
    assert_true(follows_b(&rig));
    rig_fini(&rig);
    mem_free(file);
}

/* The file of a server without a journal does not name a slot that was claimed
 * in the moments before a kill, but the snapshot may have its data. B has older
 * data, then FORCE-SERVE is said there. */
TEST(data_that_nobody_holds_waits_for_the_owner)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct holdings *of_b = held_by_b(9);
    struct rig rig;

    file->held[7] = 0;
    file->known[7] = 8;
    of_b->held[7] = 6;
    begin(&rig, file);
    answer(&rig, of_b);
    assert_false(follows_b(&rig));
    assert_int_equal(slot_set_count(&rig.sidecar->waiting), 1);
    of_b->held[7] = 10;
    answer(&rig, of_b);
    assert_true(follows_b(&rig));
    rig_fini(&rig);
    mem_free(file);
    mem_free(of_b);
}

TEST(data_that_nobody_holds_goes_when_an_operator_lets_it_go)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct holdings *of_b = held_by_b(9);
    struct slot_set waiting, exported;
    char reason[128] = "";
    struct rig rig;

    file->held[7] = of_b->held[7] = 0;
    file->known[7] = 8;
    begin(&rig, file);
    answer(&rig, of_b);
    assert_false(follows_b(&rig));
    waiting = rig.sidecar->waiting;
    assert_true(slot_set_has(&waiting, 7));
    assert_true(sidecar_give_let_go(rig.sidecar, &waiting, &exported, reason,
                                    sizeof(reason)));
    sidecar_give_gone(rig.sidecar, &waiting, rig.now_ms);
    answer(&rig, of_b);
    assert_true(follows_b(&rig));
    rig_fini(&rig);
    mem_free(file);
    mem_free(of_b);
}

/* A search of each would take long. */
TEST(of_many_slots_that_nobody_holds_all_wait_for_those_with_keys)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct rig rig;

    memset(file->held, 0, sizeof(file->held));
    begin(&rig, file);
    answer(&rig, NULL);
    assert_false(follows_b(&rig));
    assert_int_equal(slot_set_count(&rig.sidecar->waiting), 5461);
    memset(&rig.leftover, 0, sizeof(rig.leftover));
    answer(&rig, NULL);
    assert_true(follows_b(&rig));
    rig_fini(&rig);
    mem_free(file);
}

TEST(a_copy_waits_too)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct holdings *of_b = held_by_b(9);
    struct rig rig;

    memcpy(file->follows, RIG_C, sizeof(file->follows));
    (void)snprintf(file->history, sizeof(file->history), "%040d", 1);
    begin(&rig, file);
    answer(&rig, NULL);
    assert_false(follows_b(&rig));
    answer(&rig, of_b);
    assert_true(follows_b(&rig));
    rig_fini(&rig);
    mem_free(file);
    mem_free(of_b);
}

TEST(what_was_held_beside_another_node_waits_too)
{
    struct holdings *file = rig_file(RIG_C, 1);
    struct holdings *of_b = held_by_b(9);
    struct rig rig;

    begin(&rig, file);
    answer(&rig, NULL);
    assert_false(follows_b(&rig));
    answer(&rig, of_b);
    assert_true(follows_b(&rig));
    rig_fini(&rig);
    mem_free(file);
    mem_free(of_b);
}

TEST(an_owner_that_has_fenced_it_may_have_a_lower_epoch)
{
    struct holdings *file = rig_file(RIG_A, 20);
    struct holdings *of_b = held_by_b(9);
    struct slot_set all = { { 0 } };
    struct slot_set granted;
    const struct sidecar_ask ask = { .question = SIDECAR_ASK_FENCE,
                                     .node = RIG_B,
                                     .set = &all,
                                     .epoch = 9,
                                     .surveyed = true,
                                     .known = 99 };
    struct rig rig;

    slot_set_add_range(&all, 0, 5460);
    begin(&rig, file);
    for (unsigned slot = 0; slot < 5461; slot++) {
        rig.sidecar->own->known[slot] = 0; /* or it would be refused */
    }
    answer(&rig, of_b);
    assert_false(follows_b(&rig));
    assert_int_equal(
        sidecar_fence(rig.sidecar, &ask, true, false, &granted, rig.now_ms)
            .kind,
        SIDECAR_FENCED);
    answer(&rig, of_b);
    assert_true(follows_b(&rig));
    rig_fini(&rig);
    mem_free(file);
    mem_free(of_b);
}

/* It gave its slots to B, and has followed B and C since. What B has is what it
 * was given then, and C's is later. */
TEST(what_was_given_once_is_not_what_is_here_now)
{
    static const char of_c[] = RIG_A
        " 10.0.0.1:7000@17000 myself,slave " RIG_C " 0 0 14 connected\n" RIG_B
        " 10.0.0.2:7001@17001 master - 0 1 9 connected\n" RIG_C
        " 10.0.0.3:7002@17002 master - 0 1 14 connected 0-10922\n";
    static const char of_b_again[] = RIG_A
        " 10.0.0.1:7000@17000 myself,slave " RIG_B " 0 0 20 connected\n" RIG_B
        " 10.0.0.2:7001@17001 master - 0 1 20 connected 0-10922\n" RIG_C
        " 10.0.0.3:7002@17002 master - 0 1 14 connected\n";
    struct holdings *file = rig_file(RIG_A, 1);
    struct holdings *held_by_c = rig_file(RIG_C, 14);
    struct holdings *of_b = held_by_b(9);
    struct slot_set all = { { 0 } };
    struct slot_set granted;
    const struct sidecar_ask ask = { .question = SIDECAR_ASK_FENCE,
                                     .node = RIG_B,
                                     .set = &all,
                                     .epoch = 9,
                                     .known = 2 };
    struct rig rig;

    slot_set_add_range(&all, 0, 5460);
    rig_init(&rig, file);
    slot_set_add(&rig.leftover, 7);
    rig_poll(&rig, RIG_NODES);
    rig_poll(&rig, EMPTIED);
    assert_int_equal(
        sidecar_fence(rig.sidecar, &ask, true, false, &granted, rig.now_ms)
            .kind,
        SIDECAR_FENCED);
    answer(&rig, of_b);
    assert_true(follows_b(&rig));
    sidecar_told(rig.sidecar, of_b, rig.now_ms);
    rig_poll(&rig, of_c);
    for (int round = 0; round < 2; round++) {
        rig_answer_survey(&rig, RIG_C, held_by_c, NULL);
        rig_tick(&rig, 1200);
    }
    assert_int_equal(rig.follows, 2);
    sidecar_told(rig.sidecar, held_by_c, rig.now_ms);
    assert_int_equal(rig.sidecar->own->held[7], 15);
    rig_poll(&rig, of_b_again);
    answer(&rig, of_b);
    assert_int_equal(rig.follows, 2);
    rig_fini(&rig);
    mem_free(file);
    mem_free(of_b);
    mem_free(held_by_c);
}

static bool
let_go(struct rig *rig, unsigned first, unsigned last, bool saved)
{
    struct slot_set set = { { 0 } };
    struct slot_set exported;
    char reason[128];

    for (unsigned slot = first; slot <= last; slot++) {
        slot_set_add(&set, slot);
    }
    if (!sidecar_let_go(rig->sidecar, &set, &exported, reason,
                        sizeof(reason))) {
        return false;
    }
    sidecar_let_go_end(rig->sidecar, &set, &exported, saved, rig->now_ms);
    return true;
}

TEST(an_operator_lets_go_what_nobody_takes)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct slot_set held;
    struct rig rig;

    begin(&rig, file);
    for (int round = 0; round < 3; round++) { /* B's daemon is silent */
        rig_answer_survey(&rig, NULL, NULL, NULL);
        rig_tick(&rig, 1200);
    }
    holdings_slots(file, &held);
    assert_false(follows_b(&rig));
    assert_false(let_go(&rig, 16000, 16383, true)); /* not held */
    assert_true(let_go(&rig, 0, 9, false));         /* the disk failed */
    assert_true(let_go(&rig, 0, 9, true));
    assert_false(let_go(&rig, 5, 5, true));
    rig_tick(&rig, 50);
    assert_false(follows_b(&rig));
    assert_int_equal(slot_set_count(&rig.sidecar->waiting),
                     slot_set_count(&held) - 10);
    assert_int_equal(rig.kept.held[9], 0);
    assert_int_equal(rig.kept.held[10], 2);
    assert_true(let_go(&rig, 10, slot_set_count(&held) - 1, true));
    rig_tick(&rig, 50);
    assert_true(follows_b(&rig));
    rig_fini(&rig);
    mem_free(file);
}

TEST(slots_of_our_node_and_of_a_move_are_not_let_go)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    assert_false(let_go(&rig, 0, 3, true)); /* our node owns them */
    rig_poll(&rig, RIG_A " 10.0.0.1:7000@17000 myself,master - 0 0 1 connected "
                         "8-5460\n" RIG_B
                         " 10.0.0.2:7001@17001 master - 0 1 2 connected 0-3\n");
    rig_tick(&rig, 50);
    assert_false(let_go(&rig, 0, 3, true)); /* B's daemon fetches them */
    assert_true(let_go(&rig, 4, 7, true));  /* nobody owns them */
    assert_int_equal(rig.kept.held[7], 0);
    assert_int_equal(rig.kept.held[8], 2);
    rig_fini(&rig);
    mem_free(file);
}

/* Has the daemon of A answer surveys until they ended that ask what it has. */
static void
answer_of_a(struct rig *rig, const struct holdings *of_a)
{
    for (int round = 0; round < 2; round++) {
        rig_answer_survey(rig, RIG_A, of_a, NULL);
        rig_tick(rig, 1200);
    }
}

/* R follows A, which comes back without its data, and fetches that from R. */
TEST(a_replica_keeps_its_copy_until_its_primary_has_it_again)
{
    static const char follows[] =
        RIG_A " 10.0.0.1:7000@17000 master - 0 0 1 connected 0-5460\n" RIG_R
              " 10.0.0.4:7003@17003 myself,slave " RIG_A " 0 1 1 connected\n";
    struct holdings *file = rig_file(RIG_R, 1);
    struct holdings *of_a = rig_file(RIG_A, 1);
    struct holdings *none = mem_zalloc(sizeof(*none));
    struct rig rig;

    memcpy(file->follows, RIG_A, sizeof(file->follows));
    (void)snprintf(file->history, sizeof(file->history), "%040d", 1);
    rig_init(&rig, file);
    slot_set_add(&rig.leftover, 7);
    assert_false(sidecar_may_copy(rig.sidecar, "life", rig.now_ms));
    rig_poll(&rig, follows);
    assert_int_equal(rig.follows, 0);
    answer_of_a(&rig, of_a);
    assert_false(sidecar_may_copy(rig.sidecar, "life", rig.now_ms));
    answer_of_a(&rig, of_a);
    assert_true(sidecar_may_copy(rig.sidecar, "life", rig.now_ms));
    assert_false(sidecar_may_copy(rig.sidecar, "next", rig.now_ms));
    answer_of_a(&rig, none);
    rig_tick(&rig, 60000);
    answer_of_a(&rig, none);
    assert_false(sidecar_may_copy(rig.sidecar, "next", rig.now_ms));
    assert_int_equal(slot_set_count(&rig.sidecar->waiting), 5461);
    answer_of_a(&rig, of_a);
    assert_true(sidecar_may_copy(rig.sidecar, "next", rig.now_ms));
    assert_int_equal(slot_set_count(&rig.sidecar->waiting), 0);
    rig_fini(&rig);
    mem_free(file);
    mem_free(of_a);
    mem_free(none);
}

/* The machine stood still; A may have lost its directory meanwhile. */
TEST(a_copy_does_not_go_by_what_was_said_long_ago)
{
    static const char of_b[] =
        RIG_A " 10.0.0.1:7000@17000 master - 0 0 1 connected 0-5460\n" RIG_B
              " 10.0.0.2:7001@17001 master - 0 1 2 connected\n" RIG_R
              " 10.0.0.4:7003@17003 myself,slave " RIG_B " 0 1 1 connected\n";
    struct holdings *file = rig_file(RIG_R, 1);
    struct holdings *of_a = rig_file(RIG_A, 1);
    struct rig rig;

    memcpy(file->follows, RIG_A, sizeof(file->follows));
    (void)snprintf(file->history, sizeof(file->history), "%040d", 1);
    rig_init(&rig, file);
    slot_set_add(&rig.leftover, 7);
    rig_poll(&rig, of_b);
    rig_tick(&rig, 50);
    rig.now_ms += 60000; /* the answers were on their way */
    rig_answer_survey(&rig, RIG_A, of_a, NULL);
    assert_false(follows_b(&rig));
    rig_tick(&rig, 50);
    rig_answer_survey(&rig, RIG_A, of_a, NULL);
    assert_true(follows_b(&rig));
    assert_false(sidecar_may_copy(rig.sidecar, "life", rig.now_ms));
    rig_tick(&rig, 1200);
    rig_answer_survey(&rig, RIG_A, of_a, NULL);
    rig.now_ms += 60000;
    assert_false(sidecar_may_copy(rig.sidecar, "life", rig.now_ms));
    rig_tick(&rig, 50);
    rig_answer_survey(&rig, RIG_A, of_a, NULL);
    assert_true(sidecar_may_copy(rig.sidecar, "life", rig.now_ms));
    rig_fini(&rig);
    mem_free(file);
    mem_free(of_a);
}

TEST(what_holds_nothing_copies_at_once)
{
    struct rig rig;

    rig_init(&rig, NULL);
    assert_true(sidecar_may_copy(rig.sidecar, "life", rig.now_ms));
    rig_fini(&rig);
}
