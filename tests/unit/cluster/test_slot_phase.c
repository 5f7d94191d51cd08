/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/slot_phase.h"

#include "../test.h"

#include <string.h>

TEST(each_phase_has_a_name_and_can_be_left_and_entered)
{
    for (unsigned from = 0; from < SLOT_PHASES; from++) {
        unsigned left = 0;
        unsigned entered = 0;

        assert_true(strlen(slot_phase_name((enum slot_phase)from)) > 0);
        assert_false(
            slot_phase_leads((enum slot_phase)from, (enum slot_phase)from));
        for (unsigned to = 0; to < SLOT_PHASES; to++) {
            left +=
                slot_phase_leads((enum slot_phase)from, (enum slot_phase)to);
            entered +=
                slot_phase_leads((enum slot_phase)to, (enum slot_phase)from);
        }
        assert_true(left > 0 && entered > 0);
    }
}

/* Rule 1: it is not served before what is here is claimed or held on. */
TEST(a_slot_that_comes_is_wanted_before_it_is_served)
{
    for (unsigned phase = 0; phase < SLOT_PHASES; phase++) {
        if (!slot_phase_is_owned((enum slot_phase)phase)) {
            assert_false(
                slot_phase_leads((enum slot_phase)phase, PHASE_SERVED));
            assert_false(
                slot_phase_leads((enum slot_phase)phase, PHASE_CLAIMED));
        }
    }
    assert_false(slot_phase_leads(PHASE_AWAITED, PHASE_LEAVING));
    assert_false(slot_phase_leads(PHASE_SERVED, PHASE_CLAIMED));
    assert_true(slot_phase_leads(PHASE_CLAIMED, PHASE_SERVED));
    assert_true(slot_phase_leads(PHASE_SERVED, PHASE_LEAVING));
}
