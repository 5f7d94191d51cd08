/* SPDX-License-Identifier: BSD-3-Clause */
#include "../test.h"
#include "cluster/sidecar_state.h"
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>

static uint64_t entered[SLOT_PHASES][SLOT_PHASES];

static void
look(const struct sim_daemon *d, unsigned slot)
{
    const struct sidecar *sidecar = d->sidecar;
    const struct sidecar_slot *at = &sidecar->slots[slot];
    bool served = at->phase == PHASE_SERVED || at->phase == PHASE_SPOKEN;
    bool good = slot_set_has(&sidecar->served, slot) == served &&
                slot_set_has(&sidecar->owned, slot) ==
                    slot_phase_is_owned((enum slot_phase)at->phase);

    for (unsigned phase = 0; phase < SLOT_PHASES; phase++) {
        good = good &&
               slot_set_has(&sidecar->in[phase], slot) == (phase == at->phase);
    }
    good = good && (!served || sidecar->own->held[slot] != 0);
    good = good && (at->phase != PHASE_FOUND || at->source != PEER_NONE);
    good = good && (at->phase != PHASE_WANTED || at->source == PEER_NONE);
    if (!good ||
        (at->phase == PHASE_CLAIMED && sidecar->claim.state == CLAIM_NONE)) {
        sim_fail("daemon %d: slot %u is not as its phase %s says", sim_index(d),
                 slot, slot_phase_name((enum slot_phase)at->phase));
    }
}

void
sim_phases_look(const struct sim_daemon *d)
{
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        look(d, sim_slot(slot));
    }
}

void
sim_phases_count(const struct sim_daemon *d)
{
    for (unsigned from = 0; from < SLOT_PHASES; from++) {
        for (unsigned to = 0; to < SLOT_PHASES; to++) {
            entered[from][to] += d->sidecar->entered[from][to];
        }
    }
}

void
sim_phases_print(void)
{
    for (unsigned from = 0; from < SLOT_PHASES; from++) {
        (void)printf("%-9s", slot_phase_name((enum slot_phase)from));
        for (unsigned to = 0; to < SLOT_PHASES; to++) {
            if (slot_phase_leads((enum slot_phase)from, (enum slot_phase)to)) {
                (void)printf(" %s %" PRIu64,
                             slot_phase_name((enum slot_phase)to),
                             entered[from][to]);
            }
        }
        (void)printf("\n");
    }
}
