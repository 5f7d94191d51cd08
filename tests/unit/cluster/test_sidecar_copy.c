/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a replica holds, and when it says so.
 */
#include "cluster/sidecar_copy.h"

#include "../test.h"
#include "base/mem.h"
#include "cluster/sidecar_times.h"
#include "sidecar_rig.h"

#include <stdio.h>
#include <string.h>

#define R_FOLLOWS                                                              \
    RIG_A " 10.0.0.1:7000@17000 master - 0 0 1 connected 0-5460\n" RIG_R       \
          " 10.0.0.4:7003@17003 myself,slave " RIG_A " 0 1 1 connected\n"

static struct sidecar_answer
holds(struct rig *rig, struct holdings *of_a, uint64_t position)
{
    struct sidecar_answer answer = { .kind = SIDECAR_HOLDS,
                                     .holdings = of_a,
                                     .position = position };

    memcpy(answer.history, rig->history, sizeof(answer.history));
    return answer;
}

static void
answer_leader(struct rig *rig, const struct sidecar_answer *answer)
{
    for (size_t i = 0; i < rig->asks; i++) {
        if (strcmp(rig->ask[i].node, RIG_A) == 0) {
            rig_answer(rig, RIG_A, SIDECAR_ASK_HOLDINGS, answer);
            i = SIZE_MAX;
        }
    }
}

TEST(a_copy_holds_what_its_leader_held_when_it_has_reached_that_place)
{
    struct holdings *of_a = mem_zalloc(sizeof(*of_a));
    struct sidecar_answer answer;
    struct rig rig;

    rig_init(&rig, NULL);
    rig_poll(&rig, R_FOLLOWS);
    assert_int_equal(rig.follows, 0);
    rig_tick(&rig, 50);
    of_a->held[5] = 2;
    rig.position = 49;
    answer = holds(&rig, of_a, 50);
    answer_leader(&rig, &answer);
    assert_int_equal(rig.state[5], SLOT_AWAY);
    rig.position = 50;
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[5], SLOT_SERVED);
    assert_int_equal(rig.state[6], SLOT_AWAY);
    assert_string_equal(rig.kept.follows, RIG_A);

    of_a->held[5] = 0; /* the leader gave it away */
    rig_tick(&rig, 1000);
    answer_leader(&rig, &answer);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[5], SLOT_AWAY);
    rig_fini(&rig);
    mem_free(of_a);
}

TEST(a_copy_of_another_history_is_not_shown)
{
    struct holdings *of_a = mem_zalloc(sizeof(*of_a));
    struct sidecar_answer answer;
    struct rig rig;

    of_a->held[5] = 2;
    rig_init(&rig, NULL);
    rig_poll(&rig, R_FOLLOWS);
    rig_tick(&rig, 50);
    answer = holds(&rig, of_a, 0);
    answer_leader(&rig, &answer);
    assert_int_equal(rig.state[5], SLOT_SERVED);
    (void)snprintf(answer.history, sizeof(answer.history), "%040d", 7);
    rig_tick(&rig, 1000);
    answer_leader(&rig, &answer);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[5], SLOT_AWAY);
    memcpy(rig.history, answer.history, sizeof(rig.history));
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[5], SLOT_SERVED);
    rig_fini(&rig);
    mem_free(of_a);
}

/* The leader that it follows now has sent its data, and died before it said
 * what it holds. */
TEST(a_copy_that_other_data_has_replaced_holds_nothing)
{
    static const char follows_b[] = RIG_A
        " 10.0.0.1:7000@17000 master - 0 0 1 connected 0-4 6-5460\n" RIG_B
        " 10.0.0.2:7001@17001 master - 0 1 2 connected 5 5461-10922\n" RIG_R
        " 10.0.0.4:7003@17003 myself,slave " RIG_B " 0 1 2 connected\n";
    static const char leads[] = RIG_A
        " 10.0.0.1:7000@17000 master - 0 0 1 connected 0-4 6-5460\n" RIG_B
        " 10.0.0.2:7001@17001 slave " RIG_R " 0 1 9 connected\n" RIG_R
        " 10.0.0.4:7003@17003 myself,master - 0 1 9 connected 5 5461-10922\n";

    for (int replaced = 0; replaced < 2; replaced++) {
        struct holdings *of_a = mem_zalloc(sizeof(*of_a));
        struct sidecar_answer answer;
        struct rig rig;

        of_a->held[5] = of_a->known[5] = 2;
        rig_init(&rig, NULL);
        rig_poll(&rig, R_FOLLOWS);
        rig_tick(&rig, 50);
        answer = holds(&rig, of_a, 0);
        answer_leader(&rig, &answer);
        rig_tick(&rig, 50);
        assert_string_equal(rig.kept.follows, RIG_A);
        assert_string_equal(rig.kept.history, rig.history);
        rig_poll(&rig, follows_b);
        rig_tick(&rig, SIDECAR_EMPTY_MS); /* B has not taken slot 5, yet */
        assert_int_equal(rig.follows, 1);
        if (replaced == 1) {
            (void)snprintf(rig.history, sizeof(rig.history), "%040d", 7);
        }
        rig_tick(&rig, 50);
        assert_int_equal(rig.kept.held[5], replaced == 1 ? 0 : 2);
        rig_poll(&rig, leads);
        assert_int_equal(rig.state[5], SLOT_HELD);
        /* It hands over what is a copy of A's, from A. */
        assert_int_equal(rig.follows, replaced == 1 ? -1 : 0);
        rig_fini(&rig);
        mem_free(of_a);
    }
}

/* It may follow us by now, and hold nothing yet. */
TEST(what_a_leader_without_a_link_answers_is_not_held)
{
    struct holdings *of_a = mem_zalloc(sizeof(*of_a));
    struct sidecar_answer answer;
    struct rig rig;

    of_a->held[5] = 2;
    rig_init(&rig, NULL);
    rig_poll(&rig, R_FOLLOWS);
    rig_tick(&rig, 50);
    answer = holds(&rig, of_a, 0);
    answer_leader(&rig, &answer);
    assert_int_equal(rig.kept.held[5], 2);
    rig.unlinked = true;
    of_a->held[5] = 0;
    rig_tick(&rig, 1000);
    answer_leader(&rig, &answer);
    rig_tick(&rig, 50);
    assert_int_equal(rig.kept.held[5], 2);
    rig_fini(&rig);
    mem_free(of_a);
}

TEST(a_leader_that_follows_is_no_leader)
{
    struct holdings *of_a = mem_zalloc(sizeof(*of_a));
    struct sidecar_answer answer;
    struct rig rig;

    of_a->held[5] = 2;
    (void)snprintf(of_a->follows, sizeof(of_a->follows), "%s", RIG_B);
    rig_init(&rig, NULL);
    rig_poll(&rig, R_FOLLOWS);
    rig_tick(&rig, 50);
    answer = holds(&rig, of_a, 0);
    answer_leader(&rig, &answer);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[5], SLOT_AWAY);
    rig_fini(&rig);
    mem_free(of_a);
}

static unsigned
asks_of_a(const struct rig *rig)
{
    unsigned count = 0;

    for (size_t i = 0; i < rig->asks; i++) {
        count += strcmp(rig->ask[i].node, RIG_A) == 0;
    }
    return count;
}

/* The survey asks it once a second or less. */
TEST(a_leader_that_tells_what_it_holds_is_not_asked)
{
    struct holdings *of_a = mem_zalloc(sizeof(*of_a));
    struct sidecar_answer answer;
    struct rig rig;
    unsigned before;

    (void)snprintf(of_a->node, sizeof(of_a->node), "%s", RIG_A);
    of_a->held[5] = 2;
    rig_init(&rig, NULL);
    rig_poll(&rig, R_FOLLOWS);
    rig_tick(&rig, 50);
    answer = holds(&rig, of_a, 0);
    before = asks_of_a(&rig);
    rig.position = 50;
    rig.is_told = true;
    sidecar_told(rig.sidecar, of_a, rig.now_ms);
    assert_int_equal(rig.state[5], SLOT_SERVED);
    assert_int_equal(rig.kept.held[5], 2);
    of_a->held[5] = 0; /* an answer that is older than the line */
    answer_leader(&rig, &answer);
    rig_tick(&rig, 300);
    assert_int_equal(rig.state[5], SLOT_SERVED);
    assert_true(asks_of_a(&rig) <= 1 && before >= 1);

    rig.is_told = false; /* the next link may be of another version */
    answer_leader(&rig, &answer);
    rig_tick(&rig, 300);
    assert_true(asks_of_a(&rig) >= 1);
    rig_fini(&rig);
    mem_free(of_a);
}

/* The link may still be the one to the server that was followed before. */
TEST(what_another_server_tells_is_not_held)
{
    struct holdings *of_b = mem_zalloc(sizeof(*of_b));
    struct rig rig;

    (void)snprintf(of_b->node, sizeof(of_b->node), "%s", RIG_B);
    of_b->held[5] = 2;
    rig_init(&rig, NULL);
    rig_poll(&rig, R_FOLLOWS);
    rig_tick(&rig, 50);
    rig.is_told = true;
    sidecar_told(rig.sidecar, of_b, rig.now_ms);
    assert_int_equal(rig.kept.held[5], 0);
    (void)snprintf(of_b->node, sizeof(of_b->node), "%s", RIG_A);
    (void)snprintf(of_b->follows, sizeof(of_b->follows), "%s", RIG_B);
    sidecar_told(rig.sidecar, of_b, rig.now_ms);
    assert_int_equal(rig.kept.held[5], 0); /* A does not lead yet */
    rig_fini(&rig);
    mem_free(of_b);
}

TEST(what_is_held_is_told_to_replicas)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    rig_tick(&rig, 50);
    assert_string_equal(rig.told.node, RIG_A);
    assert_int_equal(rig.told.held[7], 2);
    rig_fini(&rig);
    mem_free(file);
}

/* The leader has lost the end of its log, and its log goes on in another way:
 * the disk of the copy will never reach the old position. */
TEST(a_copy_that_older_data_of_its_leader_has_replaced_is_held_anew)
{
    struct holdings *of_a = mem_zalloc(sizeof(*of_a));
    struct rig rig;

    (void)snprintf(of_a->node, sizeof(of_a->node), "%s", RIG_A);
    of_a->held[5] = 2;
    rig_init(&rig, NULL);
    rig_poll(&rig, R_FOLLOWS);
    rig.position = 50;
    rig.is_told = true;
    sidecar_told(rig.sidecar, of_a, rig.now_ms);
    rig_tick(&rig, 50);
    assert_int_equal(rig.kept.held[5], 2);
    (void)snprintf(rig.history, sizeof(rig.history), "%040d", 7);
    rig.continues = true;
    rig.position = 10;
    rig_tick(&rig, 50);
    assert_int_equal(rig.kept.held[5], 0);
    sidecar_told(rig.sidecar, of_a, rig.now_ms);
    rig_tick(&rig, 50);
    assert_int_equal(rig.kept.held[5], 2);
    assert_int_equal(rig.kept.from, 10);
    rig_fini(&rig);
    mem_free(of_a);
}
