/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The word of an operator holds until the slot is served, or is not ours any
 * more. A survey that begins later has to end first: another node may own the
 * slot by now, and its daemon claim it. Neither does the word shorten the time
 * for which a silent daemon may have a lease: the claim goes on as with
 * sidecar-missing-slot empty.
 */
#include "cluster/sidecar_force.h"

#include "base/log.h"

#include <stdio.h>

bool
sidecar_is_forced(const struct sidecar *sidecar, unsigned slot)
{
    return sidecar->options.missing_empty || sidecar->slots[slot].forced;
}

/* Writes why the slot is not missing. False: it is. */
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
sidecar_force(struct sidecar *sidecar, const struct slot_set *set, bool leased,
              char *ret_reason, size_t size)
{
    if (sidecar->topology == NULL || !leased) {
        (void)snprintf(ret_reason, size,
                       "the neighbour does not answer (sidecar-of), so another "
                       "node may own the slots by now");
        return false;
    }
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        if (slot_set_has(set, slot) &&
            refuse_slot(sidecar, slot, ret_reason, size)) {
            return false;
        }
    }
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        if (slot_set_has(set, slot)) {
            sidecar->slots[slot].forced = true;
            sidecar->slots[slot].wanted_round =
                sidecar->survey.rounds + (sidecar->survey.open > 0);
        }
    }
    log_warn("cluster.sidecar",
             "an operator has slots served without their "
             "data",
             "slots=%u next=\"what is here is served; items that only lost "
             "servers had count as absent\"",
             slot_set_count(set));
    return true;
}
