/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/claim_decide.h"

#include "cluster/sidecar_fallen.h"
#include "cluster/sidecar_force.h"
#include "cluster/survey.h"

/* Decides by the result of the survey. A silent daemon may have newer data than
 * the daemons that answered, and may serve it until its lease has ended. */
static enum want
decide_found(struct sidecar *sidecar, unsigned slot, uint64_t now_ms)
{
    const struct sidecar_holder *holder = &sidecar->survey.found[slot];
    const struct holdings *own = sidecar->own;
    uint64_t best = own->held[slot];
    bool ours = survey_has_none_newer(sidecar, slot);
    bool patient =
        now_ms - sidecar->slots[slot].wanted_ms >= sidecar->options.silence_ms;
    uint16_t from = holder->peer;

    best = holder->epoch > best ? holder->epoch : best;
    if (holder->claimed || holder->known != own->known[slot] ||
        (best < holder->known && holder->rises)) {
        survey_hurry(sidecar);
        return WANT_WAITS;
    }
    if (sidecar_is_fallen(sidecar, slot) &&
        (!patient || !sidecar->topology->ok || !sidecar->slots[slot].forced)) {
        /* Perhaps our node does not know yet that another one owns the slot. */
        return patient ? WANT_MISSING : WANT_WAITS;
    }
    if ((best < own->known[slot] && !sidecar->survey.complete) ||
        (best == 0 && (own->known[slot] != 0 || !sidecar->survey.complete))) {
        if (!sidecar_is_forced(sidecar, slot)) {
            return WANT_MISSING;
        }
        if (!patient) {
            return WANT_WAITS;
        }
    }
    if ((holder->copy || (ours && own->copied[slot] != 0) ||
         !sidecar->survey.complete) &&
        !patient) {
        return WANT_WAITS; /* a silent daemon may have a lease and serve the
                              slot */
    }
    if (sidecar_force_chooses(sidecar, slot, &ours, &from) && !patient) {
        return WANT_WAITS;
    }
    if (ours) {
        return WANT_KEEP;
    }
    sidecar->slots[slot].source = from;
    sidecar->slots[slot].surveyed = true;
    return WANT_CLAIM;
}

enum want
claim_decide(struct sidecar *sidecar, unsigned slot, uint64_t now_ms)
{
    bool fenced = sidecar->slots[slot].fenced;

    if (fenced &&
        now_ms - sidecar->slots[slot].fenced_ms < sidecar->options.fence_ms) {
        return WANT_WAITS;
    }
    if (!fenced && !sidecar_may_be_fenced(sidecar, slot) &&
        sidecar->own->held[slot] == sidecar_epoch(sidecar) &&
        sidecar->own->copied[slot] == 0) {
        return WANT_SERVE;
    }
    if (sidecar->slots[slot].source != PEER_NONE &&
        !sidecar->slots[slot].surveyed) {
        return WANT_CLAIM;
    }
    if (sidecar->survey.rounds <= sidecar->slots[slot].wanted_round) {
        survey_hurry(sidecar);
        return WANT_WAITS;
    }
    return decide_found(sidecar, slot, now_ms);
}
