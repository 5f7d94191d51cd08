/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The decision of an operator is valid until the slot is served, or is not ours
 * any more. The slot is served only after a survey that begins later: another
 * node may own the slot by now, and its daemon may claim it. The decision does
 * not shorten the wait for the lease of a silent daemon. The claim goes on as
 * with "sidecar-missing-slot empty".
 */
#include "cluster/sidecar_force.h"

#include "base/log.h"
#include "cluster/candidates.h"
#include "cluster/sidecar_fallen.h"
#include "cluster/sidecar_peers.h"
#include "cluster/survey.h"

#include <stdio.h>

bool
sidecar_is_forced(const struct sidecar *sidecar, unsigned slot)
{
    const struct sidecar_slot *at = &sidecar->slots[slot];

    return sidecar->options.missing_empty || (at->forced && !at->forced_found);
}

/* Returns whether the slot is not missing, and writes why. */
static bool
refuse_slot(const struct sidecar *sidecar, unsigned slot, char *ret_reason,
            size_t size)
{
    uint16_t source = sidecar->slots[slot].source;

    if (!slot_set_has(&sidecar->owned, slot)) {
        (void)snprintf(ret_reason, size,
                       "the node beside this server does not own slot %u",
                       slot);
    } else if (slot_set_has(&sidecar->served, slot)) {
        (void)snprintf(ret_reason, size, "slot %u is served: it is not missing",
                       slot);
    } else if (slot_set_has(&sidecar->in[PHASE_MISSING], slot)) {
        return false;
    } else if (source != PEER_NONE) {
        (void)snprintf(ret_reason, size,
                       "slot %u is not missing: the server beside node %s has "
                       "its data, which is being fetched",
                       slot, sidecar->peers[source].id);
    } else {
        (void)snprintf(ret_reason, size,
                       "slot %u is not known to be missing yet: this server "
                       "is still asking the others for its data",
                       slot);
    }
    return true;
}

bool
sidecar_force_check(const struct sidecar *sidecar, const struct slot_set *set,
                    bool leased, char *ret_reason, size_t size)
{
    if (sidecar->topology == NULL || !leased) {
        (void)snprintf(ret_reason, size,
                       "the neighbour does not answer (sidecar-of), so another "
                       "node may own the slots by now");
        return false;
    }
    slot_set_foreach (set, slot) {
        if (refuse_slot(sidecar, slot, ret_reason, size)) {
            return false;
        }
    }
    return true;
}

/* Returns whether the slots cannot be taken from the server beside node `from`,
 * and writes why. */
static bool
refuse_source(const struct sidecar *sidecar, const struct slot_set *set,
              const char *from, struct candidate *candidates, char *ret_reason,
              size_t size)
{
    const struct candidate *source = candidates_find(candidates, from);

    if (topology_find(sidecar->topology, slice_of(from)) < 0) {
        (void)snprintf(ret_reason, size,
                       "node %s is not in our node's view of the cluster",
                       from);
        return true;
    }
    slot_set_foreach (set, slot) {
        if (source == NULL || !slot_set_has(&source->has, slot)) {
            (void)snprintf(ret_reason, size,
                           "the server beside node %s has no data of slot %u",
                           from, slot);
            return true;
        }
    }
    return false;
}

/* Returns the peer whose data of the slot has the highest epoch. If there are
 * several, chooses as a survey does. */
static uint16_t
highest_of(struct sidecar *sidecar, unsigned slot)
{
    return survey_has_none_newer(sidecar, slot)
               ? sidecar_peer_of(sidecar, sidecar->own->node)
               : sidecar->survey.found[slot].peer;
}

/* Returns the peer that has a copy of later data than any server holds, or
 * PEER_NONE. A replica may have the data of a lost primary without holding the
 * slot. If its copy has more items than the data that is held, the copy is not
 * merely an incomplete copy of that data. */
static uint16_t
later_copy(struct sidecar *sidecar, unsigned slot, struct candidate *candidates)
{
    const struct candidate *copy = candidates_copy(candidates, slot);
    const struct sidecar_holder *holder = &sidecar->survey.found[slot];
    uint16_t best = highest_of(sidecar, slot);
    const struct candidate *held =
        candidates_find(candidates, sidecar->peers[best].id);
    uint64_t known = sidecar->own->known[slot];

    if (copy == NULL || known <= sidecar->own->held[slot] ||
        known <= holder->epoch ||
        (held != NULL && copy->slot[slot].items <= held->slot[slot].items)) {
        return PEER_NONE;
    }
    return sidecar_peer_of(sidecar, copy->node);
}

static void
note_choice(struct sidecar *sidecar, unsigned slot,
            struct candidate *candidates)
{
    uint16_t peer = sidecar->slots[slot].forced_from;
    struct candidate *candidate;

    if (peer == PEER_NONE) {
        peer = highest_of(sidecar, slot);
    }
    candidate = candidates_find(candidates, sidecar->peers[peer].id);
    if (candidate != NULL) {
        slot_set_add(&candidate->chosen, slot);
    }
}

static void
tell_choice(const struct candidate *candidates)
{
    for (const struct candidate *at = candidates; at != NULL; at = at->next) {
        struct slot_set left = at->has;
        struct candidate_row row;

        while (candidate_next_row(at, &left, &row)) {
            log_warn("cluster.sidecar",
                     row.chosen ? "an operator has chosen data"
                                : "an operator has not chosen data",
                     "node=%s slots=%u held=%s epoch=%llu filters=%llu "
                     "items=%llu",
                     row.node, slot_set_count(&row.set),
                     row.epoch > 0 ? "yes" : "no",
                     (unsigned long long)(row.epoch > 0 ? row.epoch - 1 : 0),
                     (unsigned long long)row.filters,
                     (unsigned long long)row.items);
        }
    }
}

bool
sidecar_force(struct sidecar *sidecar, const struct slot_set *set,
              const char *from, struct candidate *candidates, char *ret_reason,
              size_t size)
{
    if (from[0] != '\0' &&
        refuse_source(sidecar, set, from, candidates, ret_reason, size)) {
        return false;
    }
    slot_set_foreach (set, slot) {
        sidecar->slots[slot].forced = true;
        sidecar->slots[slot].forced_found =
            sidecar->survey.complete && survey_finds_newest(sidecar, slot);
        sidecar->slots[slot].wanted_round =
            sidecar->survey.rounds + (sidecar->survey.open > 0);
        sidecar->slots[slot].forced_from =
            from[0] != '\0' ? sidecar_peer_of(sidecar, from)
                            : later_copy(sidecar, slot, candidates);
        note_choice(sidecar, slot, candidates);
    }
    log_warn("cluster.sidecar",
             "an operator has slots served without their "
             "data",
             "slots=%u from=%s next=\"what is there is served; items that only "
             "lost servers had count as absent\"",
             slot_set_count(set), from[0] != '\0' ? from : "-");
    tell_choice(candidates);
    return true;
}

bool
sidecar_force_chooses(const struct sidecar *sidecar, unsigned slot,
                      bool *ret_ours, uint16_t *ret_from)
{
    const struct sidecar_holder *holder = &sidecar->survey.found[slot];
    const struct holdings *own = sidecar->own;
    uint16_t from = sidecar_forced_from(sidecar, slot);
    bool lost = own->held[slot] < own->known[slot] &&
                !survey_finds_newest(sidecar, slot);

    if (from == PEER_NONE || (!lost && !sidecar_is_fallen(sidecar, slot))) {
        return false;
    }
    *ret_ours = strcmp(sidecar->peers[from].id, own->node) == 0 ||
                (holder->peer == from && holder->ours);
    *ret_from = from;
    return true;
}

void
sidecar_force_failed(struct sidecar *sidecar, const struct slot_set *set)
{
    slot_set_foreach (set, slot) {
        sidecar->slots[slot].forced = false;
    }
    log_warn("cluster.sidecar", "the data that was chosen is not to be had",
             "slots=%u next=\"say SIDECAR FORCE-SERVE again\"",
             slot_set_count(set));
}
