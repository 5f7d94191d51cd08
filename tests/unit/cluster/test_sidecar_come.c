/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots move from B to our node one after another.
 */
#include "cluster/sidecar_come.h"

#include "../test.h"
#include "base/mem.h"
#include "cluster/sidecar_times.h"
#include "sidecar_rig.h"

#include <string.h>

#define MOVED(last, first)                                                     \
    RIG_A " 10.0.0.1:7000@17000 myself,master - 0 0 4 connected 0-" last       \
          "\n" RIG_B " 10.0.0.2:7001@17001 master - 0 1 2 connected " first    \
          "-10922\n"

static const struct sidecar_answer keys = { .kind = SIDECAR_HAS_KEYS };
static const struct sidecar_answer refused = { .kind = SIDECAR_REFUSED,
                                               .reason = "it started again" };

/* Slot 5461 is copied from B, and slot 5462 has moved, too. */
static void
begin(struct rig *rig)
{
    struct holdings *file = rig_file(RIG_A, 1);

    rig_init(rig, file);
    rig_poll(rig, RIG_NODES);
    rig_poll(rig, MOVED("5461", "5462"));
    rig_answer(rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &keys);
    assert_int_equal(rig->state[5461], SLOT_PULLED);
    rig_poll(rig, MOVED("5462", "5463"));
    mem_free(file);
}

static bool
comes(const struct rig *rig, unsigned slot)
{
    for (size_t i = 0; i < rig->asks; i++) {
        if (rig->ask[i].question == SIDECAR_ASK_COME) {
            assert_string_equal(rig->ask[i].node, RIG_B);
            assert_int_equal(rig->ask[i].known, 3);
            return slot_set_has(&rig->ask[i].set, slot) &&
                   slot_set_count(&rig->ask[i].set) == 1;
        }
    }
    return false;
}

TEST(clients_are_sent_to_the_source_of_a_slot_before_its_turn)
{
    struct rig rig;

    begin(&rig);
    assert_int_equal(rig.state[5462], SLOT_HELD); /* B has not answered */
    assert_true(comes(&rig, 5462));
    rig_answer(&rig, RIG_B, SIDECAR_ASK_COME, &keys);
    assert_int_equal(rig.state[5462], SLOT_PULLED);
    assert_int_equal(rig.source[5462], 1);
    assert_false(comes(&rig, 5462)); /* not at once */
    rig_tick(&rig, COME_AGAIN_MS + 50);
    assert_true(comes(&rig, 5462));
    rig_answer(&rig, RIG_B, SIDECAR_ASK_COME, &refused);
    assert_int_equal(rig.state[5462], SLOT_HELD);
    rig_fini(&rig);
}

/* It would send them back here. */
TEST(clients_are_not_sent_to_a_source_whose_link_broke_until_it_is_asked_again)
{
    struct rig rig;

    begin(&rig);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_COME, &keys);
    assert_int_equal(rig.state[5462], SLOT_PULLED);
    sidecar_pull_broke(rig.sidecar, rig.now_ms);
    assert_int_equal(rig.state[5462], SLOT_HELD);
    assert_true(comes(&rig, 5462)); /* at once */
    rig_answer(&rig, RIG_B, SIDECAR_ASK_COME, &keys);
    assert_int_equal(rig.state[5462], SLOT_PULLED);
    rig_fini(&rig);
}

TEST(clients_are_not_sent_to_a_source_that_failed_until_it_is_asked_again)
{
    struct rig rig;

    begin(&rig);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_COME, &keys);
    assert_int_equal(rig.state[5462], SLOT_PULLED);
    sidecar_pull_ended(rig.sidecar, false, "B cannot be reached", rig.now_ms);
    assert_int_equal(rig.state[5462], SLOT_HELD);
    rig_fini(&rig);
}

/* A source that is only late goes on serving them. */
TEST(clients_are_not_sent_to_a_source_that_ends_while_it_is_fenced)
{
    const struct sidecar_answer silent = { .kind = SIDECAR_SILENT,
                                           .reason = "it is silent" };
    struct rig rig;

    begin(&rig);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_COME, &keys);
    sidecar_pull_is_near(rig.sidecar, rig.now_ms);
    assert_int_equal(rig.state[5461], SLOT_HELD);
    rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE, &silent);
    rig_tick(&rig, 10);
    assert_int_equal(rig.state[5462], SLOT_PULLED);
    sidecar_pull_broke(rig.sidecar, rig.now_ms);
    assert_int_equal(rig.state[5462], SLOT_HELD);
    rig_fini(&rig);
}

TEST(an_answer_about_a_slot_that_has_gone_is_of_no_use)
{
    struct rig rig;

    begin(&rig);
    rig_poll(&rig, MOVED("5461", "5462"));
    rig_answer(&rig, RIG_B, SIDECAR_ASK_COME, &keys);
    assert_int_not_equal(rig.state[5462], SLOT_PULLED);
    rig_poll(&rig, MOVED("5462", "5463"));
    assert_int_equal(rig.state[5462], SLOT_HELD);
    assert_true(comes(&rig, 5462));
    rig_fini(&rig);
}

/* B's node does not know yet that it has lost the slot, or does. */
TEST(a_source_serves_those_who_are_sent_and_is_not_fenced)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct slot_set set = { { 0 } };
    struct slot_set granted;
    const struct sidecar_ask ask = { .question = SIDECAR_ASK_COME,
                                     .node = RIG_B,
                                     .set = &set,
                                     .epoch = 9,
                                     .known = 2 };
    struct rig rig;

    slot_set_add(&set, 7);
    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            sidecar_fence(rig.sidecar, &ask, true, true, &granted, rig.now_ms)
                .kind,
            SIDECAR_HAS_KEYS); /* though it is empty */
        rig_tick(&rig, 50);
        assert_int_equal(rig.state[7], i == 0 ? SLOT_SERVED : SLOT_EXPORTED);
        rig_poll(&rig, RIG_A " 10.0.0.1:7000@17000 myself,master - 0 0 1 "
                             "connected 0-6\n" RIG_B
                             " 10.0.0.2:7001@17001 master - 0 1 9 connected "
                             "7-10922\n");
    }
    assert_int_equal(rig.kept.known[7], 2);
    rig_fini(&rig);
    mem_free(file);
}
