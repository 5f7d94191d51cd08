/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/sidecar_fallen.h"

#include "base/log.h"
#include "cluster/survey.h"

/* Returns the lowest epoch at which the slot can be claimed, plus 1: its holder
 * refuses a claim at a lower epoch. */
static uint64_t
asked_of(const struct sidecar *sidecar, unsigned slot)
{
    uint64_t held = sidecar->survey.found[slot].epoch;
    uint64_t known = sidecar->own->known[slot];

    return held > known ? held : known;
}

bool
sidecar_is_fallen(const struct sidecar *sidecar, unsigned slot)
{
    bool fetched =
        sidecar->survey.found[slot].epoch > sidecar->own->held[slot] ||
        !survey_has_none_newer(sidecar, slot); /* ours is a shorter copy */

    return fetched && asked_of(sidecar, slot) > sidecar_epoch(sidecar);
}

bool
sidecar_may_be_fenced(const struct sidecar *sidecar, unsigned slot)
{
    const struct sidecar_slot *at = &sidecar->slots[slot];
    uint64_t held = sidecar->own->held[slot];
    uint64_t known = sidecar->own->known[slot];

    return at->source_epoch > held || (known > held && known > at->judged);
}

uint64_t
sidecar_raised_of(const struct sidecar *sidecar, unsigned slot)
{
    uint64_t held = sidecar->own->held[slot];
    uint64_t known = sidecar->own->known[slot];
    uint64_t epoch = sidecar_epoch(sidecar);

    if (known > held && known > epoch && sidecar->slots[slot].forced) {
        return known + 1;
    }
    return held > epoch ? held : 0;
}

void
sidecar_separate_raised(struct sidecar *sidecar, struct slot_set *set)
{
    struct claim *claim = &sidecar->claim;
    bool first = true;

    slot_set_foreach (set, slot) {
        uint64_t raised = sidecar_raised_of(sidecar, slot);

        claim->raised = first ? raised : claim->raised;
        first = false;
        if (raised != claim->raised) {
            slot_set_remove(set, slot);
        }
    }
}

/* Notes and logs which of the missing slots have a fallen owner. */
static void
note_fallen(struct sidecar *sidecar)
{
    const struct slot_set *missing = &sidecar->in[PHASE_MISSING];
    struct slot_set fallen = *missing;
    unsigned at = 0;
    unsigned first;
    unsigned last;

    slot_set_foreach (missing, slot) {
        if (!sidecar_is_fallen(sidecar, slot)) {
            slot_set_remove(&fallen, slot);
        }
    }
    if (slot_set_equal(&fallen, &sidecar->fallen)) {
        return;
    }
    sidecar->fallen = fallen;
    sidecar->changed = true;
    if (slot_set_next(&fallen, &at, &first, &last)) {
        log_error(
            "cluster.claim", "the epoch of slots' owner has fallen",
            "slots=%u first=%u epoch=%llu held_at=%llu next=\"say CLUSTER "
            "BUMPEPOCH to this server's node until its epoch is above "
            "the other one, or SIDECAR FORCE-SERVE to this server\"",
            slot_set_count(&fallen), first,
            (unsigned long long)sidecar_node(sidecar)->epoch,
            (unsigned long long)asked_of(sidecar, first) - 1);
    }
}

void
sidecar_set_missing(struct sidecar *sidecar, const struct slot_set *wanted,
                    const struct slot_set *missing)
{
    sidecar->changed |= !slot_set_equal(missing, &sidecar->in[PHASE_MISSING]);
    slot_set_foreach (wanted, slot) {
        if (slot_set_has(missing, slot)) {
            sidecar_enter(sidecar, slot, PHASE_MISSING);
        } else {
            sidecar_enter_open(sidecar, slot);
        }
    }
    note_fallen(sidecar);
}
