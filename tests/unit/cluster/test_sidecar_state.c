/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all files of the sidecar use.
 */
#include "cluster/sidecar_state.h"

#include "../test.h"
#include "sidecar_rig.h"

TEST(questions_have_numbers_of_their_own_and_our_epoch)
{
    struct rig rig;
    uint64_t first;

    rig_init(&rig, NULL);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(sidecar_epoch(rig.sidecar), 2);
    first = sidecar_ask(rig.sidecar,
                        (struct sidecar_ask){ .question = SIDECAR_ASK_HOLDINGS,
                                              .node = RIG_B });
    assert_int_equal(rig.ask[rig.asks - 1].number, first);
    assert_int_equal(rig.ask[rig.asks - 1].epoch, 1);
    assert_true(sidecar_ask(rig.sidecar, (struct sidecar_ask){
                                             .question = SIDECAR_ASK_HOLDINGS,
                                             .node = RIG_B }) > first);
    rig_fini(&rig);
}

static void
enter(struct sidecar *sidecar, enum slot_phase phase)
{
    sidecar_enter(sidecar, 9, phase);
    for (unsigned i = 0; i < SLOT_PHASES; i++) {
        assert_int_equal(slot_set_has(&sidecar->in[i], 9), i == phase);
    }
    assert_int_equal(slot_set_has(&sidecar->owned, 9),
                     slot_phase_is_owned(phase));
}

TEST(what_is_here_is_the_newest_from_serving_until_it_has_passed)
{
    struct rig rig;
    struct sidecar *sidecar;
    const struct sidecar_slot *slot;

    rig_init(&rig, NULL);
    sidecar = rig.sidecar;
    slot = &sidecar->slots[9];
    enter(sidecar, PHASE_WANTED);
    enter(sidecar, PHASE_AWAITED);
    assert_false(slot->newest); /* it was lost before it was served */
    enter(sidecar, PHASE_FOUND);
    enter(sidecar, PHASE_SERVED);
    assert_true(slot_set_has(&sidecar->served, 9));
    enter(sidecar, PHASE_LEAVING);
    assert_false(slot_set_has(&sidecar->served, 9));
    enter(sidecar, PHASE_AWAITED);
    enter(sidecar, PHASE_PASSED);
    assert_true(slot->newest);
    enter(sidecar, PHASE_AWAY);
    assert_false(slot->newest);
    rig_fini(&rig);
}

/* An operator's word holds until the slot is served, or lost. */
TEST(a_slot_is_forced_until_it_is_served_or_lost)
{
    struct rig rig;
    struct sidecar *sidecar;

    rig_init(&rig, NULL);
    sidecar = rig.sidecar;
    enter(sidecar, PHASE_WANTED);
    enter(sidecar, PHASE_MISSING);
    sidecar->slots[9].forced = true;
    enter(sidecar, PHASE_WANTED);
    enter(sidecar, PHASE_CLAIMED);
    assert_true(sidecar->slots[9].forced);
    enter(sidecar, PHASE_SERVED);
    assert_false(sidecar->slots[9].forced);
    rig_fini(&rig);
}
