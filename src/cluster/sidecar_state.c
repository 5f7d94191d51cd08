/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/sidecar_state.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>

uint16_t
sidecar_peer_of(struct sidecar *sidecar, const char *id)
{
    size_t at = 0;

    while (at < sidecar->peer_count && strcmp(sidecar->peers[at].id, id) != 0) {
        at++;
    }
    if (at < sidecar->peer_count) {
        return (uint16_t)at;
    }
    CHECK(sidecar->peer_count < PEER_NONE);
    if (sidecar->peer_count == sidecar->peer_room) {
        size_t room = sidecar->peer_room * 2 + 16;
        struct sidecar_peer *more = mem_zalloc(room * sizeof(*more));

        if (sidecar->peer_count > 0) {
            memcpy(more, sidecar->peers, sidecar->peer_count * sizeof(*more));
        }
        mem_free(sidecar->peers);
        sidecar->peers = more;
        sidecar->peer_room = room;
    }
    (void)snprintf(sidecar->peers[at].id, sizeof(sidecar->peers[at].id), "%s",
                   id);
    sidecar->peer_count++;
    return (uint16_t)at;
}

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
    ask.epoch = sidecar_node(sidecar)->epoch;
    sidecar->hooks.ask(sidecar->hooks.ctx, &ask);
    return ask.number;
}

void
sidecar_want(struct sidecar *sidecar, unsigned slot, uint16_t source,
             uint64_t now_ms)
{
    sidecar->source[slot] = source;
    slot_set_remove(&sidecar->surveyed, slot);
    sidecar->wanted_ms[slot] = now_ms;
    sidecar->wanted_round[slot] =
        sidecar->survey.rounds + (sidecar->survey.open > 0);
}

void
sidecar_serve(struct sidecar *sidecar, const struct slot_set *set)
{
    slot_set_unite(&sidecar->served, set);
    slot_set_foreach (set, slot) {
        sidecar->given_ms[slot] = 0; /* it has come back */
    }
    slot_set_subtract(&sidecar->fenced, set);
    slot_set_subtract(&sidecar->missing, set);
    slot_set_subtract(&sidecar->forced, set);
    sidecar->changed = true;
    log_notice("cluster.sidecar", "serves slots", "slots=%u of=%u",
               slot_set_count(&sidecar->served),
               slot_set_count(&sidecar->owned));
}

uint64_t
sidecar_keep(struct sidecar *sidecar)
{
    struct holdings *coming;
    uint64_t ticket;

    sidecar->dirty = false;
    if (sidecar->claim.state != CLAIM_KEEPS) {
        return sidecar->hooks.keep(sidecar->hooks.ctx, sidecar->own);
    }
    coming = mem_alloc(sizeof(*coming));
    *coming = *sidecar->own;
    holdings_set(coming, &sidecar->claim.set, sidecar->claim.epoch);
    ticket = sidecar->hooks.keep(sidecar->hooks.ctx, coming);
    mem_free(coming);
    return ticket;
}
