/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/sidecar_show.h"

#include "base/mem.h"
#include "cluster/sidecar_peers.h"
#include "cluster/view.h"

/* Returns the node to which ASK redirects for the slots that are being pulled.
 * Returns TOPOLOGY_NOBODY if no slots are pulled, if the node is gone, or if
 * commands must wait. Commands wait while the source may have old data: changes
 * that the source acknowledged would be lost if newer data was found. */
static uint16_t
source_of_pull(const struct sidecar *sidecar)
{
    const struct claim *claim = &sidecar->claim;
    int node = -1;

    if (claim->state == CLAIM_PULLS && !claim->broke && !claim->copy &&
        !claim->old) {
        node = topology_find(sidecar->topology, slice_of(claim->source));
    }
    return node < 0 ? TOPOLOGY_NOBODY : (uint16_t)node;
}

static enum slot_state
state_of_owned(const struct sidecar *sidecar, unsigned slot, bool pulls)
{
    const struct sidecar_slot *at = &sidecar->slots[slot];

    switch (at->phase) {
    case PHASE_SERVED:
    case PHASE_SPOKEN:
        return sidecar->behind ? SLOT_MISSING : SLOT_SERVED;
    case PHASE_MISSING:
        return SLOT_MISSING;
    case PHASE_CLAIMED:
        /* A slot without a source was fenced here during the claim. */
        return pulls && at->source != PEER_NONE ? SLOT_PULLED : SLOT_HELD;
    case PHASE_FOUND:
        return at->source_serves ? SLOT_PULLED : SLOT_HELD;
    default:
        return SLOT_HELD;
    }
}

/* Returns the node whose server serves a slot until we claim it;
 * TOPOLOGY_NOBODY: the node has gone. */
static uint16_t
source_of_found(const struct sidecar *sidecar, unsigned slot)
{
    uint16_t peer = sidecar->slots[slot].source;
    int node =
        topology_find(sidecar->topology, slice_of(sidecar->peers[peer].id));

    return node < 0 ? TOPOLOGY_NOBODY : (uint16_t)node;
}

static void
show_owned(struct sidecar *sidecar)
{
    uint16_t source = source_of_pull(sidecar);

    slot_set_foreach (&sidecar->owned, slot) {
        enum slot_state state =
            state_of_owned(sidecar, slot, source != TOPOLOGY_NOBODY);

        if (state == SLOT_PULLED) {
            sidecar->ask_source[slot] =
                sidecar->slots[slot].phase == PHASE_FOUND
                    ? source_of_found(sidecar, slot)
                    : source;
            state = sidecar->ask_source[slot] == TOPOLOGY_NOBODY ? SLOT_HELD
                                                                 : state;
        }
        sidecar->state[slot] = (uint8_t)state;
    }
}

/* Shows the leader's slots as served, since a replica serves its copy of them
 * to readers. */
static void
show_copies(struct sidecar *sidecar)
{
    int leader = sidecar_node(sidecar)->primary;

    if (leader < 0 || !sidecar->copy_is_good || sidecar->waits_ms != 0) {
        return;
    }
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        if (sidecar->own->held[slot] != 0 &&
            sidecar->topology->owner[slot] == (uint16_t)leader) {
            sidecar->state[slot] = SLOT_SERVED;
        }
    }
}

static void
show(struct sidecar *sidecar, enum slot_phase phase, enum slot_state state,
     enum slot_state without)
{
    slot_set_foreach (&sidecar->in[phase], slot) {
        sidecar->state[slot] =
            (uint8_t)(sidecar->own->held[slot] != 0 ? state : without);
    }
}

/* Shows the slots that another node owns and whose data is here. */
static void
show_given(struct sidecar *sidecar)
{
    show(sidecar, PHASE_EXPORTED, SLOT_EXPORTED, SLOT_AWAY);
    show(sidecar, PHASE_LEAVING, SLOT_LEAVING, SLOT_HELD);
    show(sidecar, PHASE_AWAITED, SLOT_HELD, SLOT_HELD);
    show(sidecar, PHASE_PASSED, SLOT_HELD, SLOT_HELD);
}

static void
show_silent(struct sidecar *sidecar)
{
    const struct topology *topology = sidecar->topology;

    if (sidecar->silent_room < topology->count) {
        mem_free(sidecar->silent);
        sidecar->silent = mem_alloc(topology->count * sizeof(bool));
        sidecar->silent_room = topology->count;
    }
    for (size_t i = 0; i < topology->count; i++) {
        uint16_t at = sidecar_peer_of(sidecar, topology->nodes[i].id);

        sidecar->silent[i] = sidecar->peers[at].silent;
    }
}

static void
show_waiting(const struct sidecar *sidecar, struct sidecar_map *map)
{
    unsigned at = 0;
    unsigned first;
    unsigned last;

    map->waits_ms = sidecar->waits_ms;
    map->waiting = slot_set_count(&sidecar->waiting);
    map->waits_for = TOPOLOGY_NOBODY;
    if (slot_set_next(&sidecar->waiting, &at, &first, &last)) {
        map->waits_for = sidecar->topology->owner[first];
    }
}

void
sidecar_show(struct sidecar *sidecar)
{
    struct sidecar_map map = { .topology = sidecar->topology,
                               .state = sidecar->state,
                               .source = sidecar->ask_source,
                               .fallen = slot_set_count(&sidecar->fallen),
                               .leaving_until_ms = sidecar->leaving_until_ms };

    memset(sidecar->state, SLOT_AWAY, CLUSTER_SLOTS);
    memset(sidecar->ask_source, 0xff,
           CLUSTER_SLOTS * sizeof(*sidecar->ask_source));
    show_waiting(sidecar, &map);
    show_silent(sidecar);
    map.silent = sidecar->silent;
    show_owned(sidecar);
    if (sidecar->role == SIDECAR_FOLLOWS) {
        show_copies(sidecar);
    } else if (sidecar->own->follows[0] == '\0' && !sidecar->behind) {
        show_given(sidecar);
    }
    sidecar->changed = false;
    sidecar->hooks.publish(sidecar->hooks.ctx, &map);
}
