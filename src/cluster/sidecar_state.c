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
sidecar_want(struct sidecar *sidecar, unsigned slot, uint16_t source,
             uint64_t now_ms)
{
    sidecar->survey.vain = 0;
    sidecar->slots[slot].source = source;
    slot_set_remove(&sidecar->surveyed, slot);
    sidecar->slots[slot].wanted_ms = now_ms;
    sidecar->slots[slot].wanted_round =
        sidecar->survey.rounds + (sidecar->survey.open > 0);
}

void
sidecar_serve(struct sidecar *sidecar, const struct slot_set *set)
{
    slot_set_unite(&sidecar->served, set);
    slot_set_foreach (set, slot) {
        sidecar->slots[slot].given_ms = 0; /* it has come back */
        sidecar->slots[slot].given_epoch = 0;
        sidecar->slots[slot].judged = sidecar->own->known[slot];
    }
    slot_set_subtract(&sidecar->fenced, set);
    slot_set_subtract(&sidecar->missing, set);
    slot_set_subtract(&sidecar->fallen, set);
    slot_set_subtract(&sidecar->forced, set);
    sidecar->changed = true;
    log_notice("cluster.sidecar", "serves slots", "slots=%u of=%u",
               slot_set_count(&sidecar->served),
               slot_set_count(&sidecar->owned));
}

void
sidecar_stop_serving(struct sidecar *sidecar, const struct slot_set *set,
                     uint64_t now_ms)
{
    slot_set_foreach (set, slot) {
        sidecar_want(sidecar, slot, PEER_NONE, now_ms);
    }
    slot_set_subtract(&sidecar->served, set);
    slot_set_subtract(&sidecar->early, set);
    sidecar->changed = true;
}
