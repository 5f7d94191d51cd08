/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/sidecar_show.h"

#include "cluster/claim.h"
#include "cluster/view.h"

/* Of a slot that our node owns. */
static enum slot_state
state_of_owned(struct sidecar *sidecar, unsigned slot, uint16_t *ret_source)
{
    uint16_t source = sidecar->source[slot];
    bool claimed = sidecar->claim.state != CLAIM_NONE &&
                   slot_set_has(&sidecar->claim.set, slot);
    int node;

    if (slot_set_has(&sidecar->served, slot)) {
        return SLOT_SERVED;
    }
    if (slot_set_has(&sidecar->missing, slot)) {
        return SLOT_MISSING;
    }
    if (source == PEER_NONE || !claimed || claim_holds(sidecar) ||
        sidecar->claim.broke || sidecar->survey.found[slot].copy) {
        return SLOT_HELD;
    }
    node =
        topology_find(sidecar->topology, slice_of(sidecar->peers[source].id));
    if (node < 0) {
        return SLOT_HELD;
    }
    *ret_source = (uint16_t)node;
    return SLOT_PULLED;
}

static enum slot_state
state_of(struct sidecar *sidecar, unsigned slot, uint16_t *ret_source)
{
    bool held = sidecar->own->held[slot] != 0;

    if (slot_set_has(&sidecar->owned, slot)) {
        return state_of_owned(sidecar, slot, ret_source);
    }
    if (sidecar->role == SIDECAR_FOLLOWS) {
        return held && sidecar->copy_is_good &&
                       sidecar->topology->owner[slot] ==
                           (uint16_t)sidecar_node(sidecar)->primary
                   ? SLOT_SERVED
                   : SLOT_AWAY;
    }
    if (!held || sidecar->own->follows[0] != '\0') {
        return SLOT_AWAY;
    }
    if (slot_set_has(&sidecar->leaving, slot)) {
        return SLOT_LEAVING;
    }
    if (slot_set_has(&sidecar->awaiting, slot)) {
        return SLOT_HELD;
    }
    return slot_set_has(&sidecar->exported, slot) ? SLOT_EXPORTED : SLOT_AWAY;
}

void
sidecar_show(struct sidecar *sidecar)
{
    struct sidecar_map map = { .topology = sidecar->topology,
                               .state = sidecar->state,
                               .source = sidecar->ask_source,
                               .leaving_until_ms = sidecar->leaving_until_ms };

    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        uint16_t source = TOPOLOGY_NOBODY;

        sidecar->state[slot] = (uint8_t)state_of(sidecar, slot, &source);
        sidecar->ask_source[slot] = source;
    }
    sidecar->changed = false;
    sidecar->hooks.publish(sidecar->hooks.ctx, &map);
}
