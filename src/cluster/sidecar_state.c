/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/sidecar_state.h"

#include "base/log.h"
#include "base/mem.h"

const struct topology_node *
sidecar_node(const struct sidecar *sidecar)
{
    return &sidecar->topology->nodes[sidecar->topology->myself];
}

uint64_t
sidecar_epoch(const struct sidecar *sidecar)
{
    return sidecar_node(sidecar)->epoch + 1;
}

uint64_t
sidecar_ask(struct sidecar *sidecar, struct sidecar_ask ask)
{
    ask.number = ++sidecar->numbers;
    if (ask.epoch < sidecar_node(sidecar)->epoch) {
        ask.epoch = sidecar_node(sidecar)->epoch;
    }
    sidecar->hooks.ask(sidecar->hooks.ctx, &ask);
    return ask.number;
}

void
sidecar_slots_init(struct sidecar *sidecar)
{
    sidecar->slots = mem_zalloc(CLUSTER_SLOTS * sizeof(*sidecar->slots));
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        struct sidecar_slot *at = &sidecar->slots[slot];

        at->owner_before = at->source = at->comer = at->forced_from = PEER_NONE;
    }
    slot_set_add_range(&sidecar->in[PHASE_AWAY], 0, CLUSTER_SLOTS - 1);
}

/* Returns whether our data of a slot that enters this phase is the newest. */
static bool
is_newest(enum slot_phase phase, bool before)
{
    switch (phase) {
    case PHASE_SERVED:
    case PHASE_SPOKEN:
    case PHASE_LEAVING:
    case PHASE_EXPORTED:
        return true;
    case PHASE_AWAITED:
    case PHASE_PASSED:
        return before;
    default:
        return false;
    }
}

static void
put(struct slot_set *set, unsigned slot, bool has)
{
    (has ? slot_set_add : slot_set_remove)(set, slot);
}

void
sidecar_enter(struct sidecar *sidecar, unsigned slot, enum slot_phase phase)
{
    struct sidecar_slot *at = &sidecar->slots[slot];
    enum slot_phase before = (enum slot_phase)at->phase;
    bool owned = slot_phase_is_owned(phase);

    if (phase == before) {
        return;
    }
    CHECK(slot_phase_leads(before, phase));
    at->phase = (uint8_t)phase;
    at->newest = is_newest(phase, at->newest);
    at->given = at->source_serves = false;
    slot_set_remove(&sidecar->in[before], slot);
    slot_set_add(&sidecar->in[phase], slot);
    put(&sidecar->owned, slot, owned);
    put(&sidecar->served, slot, phase == PHASE_SERVED || phase == PHASE_SPOKEN);
    if (!owned || phase == PHASE_SERVED) {
        slot_set_remove(&sidecar->fallen, slot);
        at->forced = at->forced_found = false;
    }
    sidecar->entered[before][phase]++;
}

void
sidecar_enter_open(struct sidecar *sidecar, unsigned slot)
{
    bool found = sidecar->slots[slot].source != PEER_NONE;

    sidecar_enter(sidecar, slot, found ? PHASE_FOUND : PHASE_WANTED);
}

const struct slot_set *
sidecar_claimed(const struct sidecar *sidecar)
{
    return &sidecar->in[PHASE_CLAIMED];
}

uint16_t
sidecar_forced_from(const struct sidecar *sidecar, unsigned slot)
{
    return sidecar->slots[slot].forced ? sidecar->slots[slot].forced_from
                                       : (uint16_t)PEER_NONE;
}

void
sidecar_want(struct sidecar *sidecar, unsigned slot, uint16_t source,
             uint64_t now_ms)
{
    sidecar->survey.vain = 0;
    sidecar->slots[slot].source = source;
    sidecar->slots[slot].surveyed = false;
    sidecar->slots[slot].source_serves = false;
    sidecar->slots[slot].wanted_ms = now_ms;
    sidecar->slots[slot].wanted_round =
        sidecar->survey.rounds + (sidecar->survey.open > 0);
}

void
sidecar_serve(struct sidecar *sidecar, const struct slot_set *set)
{
    slot_set_foreach (set, slot) {
        struct sidecar_slot *at = &sidecar->slots[slot];

        sidecar_enter(sidecar, slot, PHASE_SERVED);
        at->given_ms = 0; /* the slot has come back */
        at->given_epoch = 0;
        at->judged = sidecar->own->known[slot];
        at->fenced = false;
    }
    sidecar->changed = true;
    log_notice("cluster.sidecar", "serves slots", "slots=%u of=%u",
               slot_set_count(&sidecar->served),
               slot_set_count(&sidecar->owned));
}

struct slot_set
sidecar_risen(const struct sidecar *sidecar, const struct slot_set *set)
{
    uint64_t epoch = sidecar_epoch(sidecar);
    struct slot_set risen = { { 0 } };

    slot_set_foreach (set, slot) {
        if (sidecar->own->held[slot] < epoch) {
            slot_set_add(&risen, slot);
        }
    }
    return risen;
}

void
sidecar_stop_serving(struct sidecar *sidecar, const struct slot_set *set,
                     uint64_t now_ms)
{
    slot_set_foreach (set, slot) {
        sidecar_want(sidecar, slot, PEER_NONE, now_ms);
        sidecar_enter(sidecar, slot, PHASE_WANTED);
    }
    sidecar->changed = true;
}
