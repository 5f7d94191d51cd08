/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/sidecar_come.h"

#include "cluster/sidecar_show.h"
#include "cluster/sidecar_times.h"

/* Collects slots with the same source, the daemon that served them last. Leaves
 * out fenced slots, and slots of which the source was told in this round. Also
 * leaves out slots whose source a survey has found: that source may not have
 * the newest data. */
static void
collect(struct sidecar *sidecar, struct slot_set *ret_set)
{
    const struct sidecar_slot *first = NULL;

    memset(ret_set, 0, sizeof(*ret_set));
    slot_set_foreach (&sidecar->in[PHASE_FOUND], slot) {
        const struct sidecar_slot *at = &sidecar->slots[slot];

        if (at->surveyed || at->fenced || at->source == PEER_NONE ||
            slot_set_has(&sidecar->come.asked, slot)) {
            continue;
        }
        first = first == NULL ? at : first;
        if (at->source == first->source &&
            at->source_epoch == first->source_epoch) {
            slot_set_add(ret_set, slot);
        }
    }
}

void
sidecar_come_tick(struct sidecar *sidecar, uint64_t now_ms)
{
    struct sidecar_come *come = &sidecar->come;
    unsigned first;

    slot_set_intersect(&come->asked, &sidecar->in[PHASE_FOUND]);
    if (come->number != 0 || sidecar->role != SIDECAR_LEADS ||
        sidecar->claim.state == CLAIM_NONE) {
        return;
    }
    if (now_ms - come->round_ms >= COME_AGAIN_MS) {
        come->round_ms = now_ms;
        memset(&come->asked, 0, sizeof(come->asked));
    }
    collect(sidecar, &come->set);
    first = slot_set_from(&come->set, 0);
    if (first == CLUSTER_SLOTS) {
        return;
    }
    if (sidecar->changed) {
        /* Commands must wait here before the source learns that we come. */
        sidecar_show(sidecar);
    }
    slot_set_unite(&come->asked, &come->set);
    come->source = sidecar->slots[first].source;
    come->number = sidecar_ask(
        sidecar,
        (struct sidecar_ask){ .question = SIDECAR_ASK_COME,
                              .node = sidecar->peers[come->source].id,
                              .set = &come->set,
                              .known = sidecar->slots[first].source_epoch });
}

void
sidecar_come_source_broke(struct sidecar *sidecar)
{
    slot_set_foreach (&sidecar->in[PHASE_FOUND], slot) {
        struct sidecar_slot *at = &sidecar->slots[slot];

        if (at->source_serves &&
            strcmp(sidecar->peers[at->source].id, sidecar->claim.source) == 0) {
            at->source_serves = false;
            slot_set_remove(&sidecar->come.asked, slot);
            sidecar->changed = true;
        }
    }
}

bool
sidecar_come_answered(struct sidecar *sidecar, uint64_t number,
                      const struct sidecar_answer *answer)
{
    struct sidecar_come *come = &sidecar->come;
    bool serves = answer->kind == SIDECAR_HAS_KEYS;

    if (number == 0 || number != come->number) {
        return false;
    }
    come->number = 0;
    slot_set_intersect(&come->set, &sidecar->in[PHASE_FOUND]);
    slot_set_foreach (&come->set, slot) {
        struct sidecar_slot *at = &sidecar->slots[slot];

        if (at->source == come->source && at->source_serves != serves) {
            at->source_serves = serves;
            sidecar->changed = true;
        }
    }
    return true;
}
