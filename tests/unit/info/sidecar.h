/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A service in sidecar mode, with a view that a test fills in.
 */
#pragma once

#include "../engine/rig.h"
#include "base/clock.h"
#include "cluster/cluster.h"

struct sidecar_rig {
    struct cluster cluster;
    struct cluster_view view;
    struct topology topology;
    struct view_node nodes[3];
};

/* What the hook transfers of every such service says. */
static inline void
sidecar_rig_transfers(void *ctx, struct slot_transfers *ret_transfers)
{
    (void)ctx;
    *ret_transfers = (struct slot_transfers){ .count = 2,
                                              .state = "loads",
                                              .source = "10.0.0.1:8001",
                                              .slots = 30,
                                              .keys = 4,
                                              .bytes = 500,
                                              .age_ms = 6000 };
}

/* The server has slots 0 to 99, of which 64 to 69 are held and 70 is missing;
 * the lease has run out, and the server 10.0.0.2:8002 is silent. */
static inline void
sidecar_rig_init(struct sidecar_rig *sidecar, struct rig *rig)
{
    struct cluster_view *view = &sidecar->view;

    memset(sidecar, 0, sizeof(*sidecar));
    sidecar->topology.ok = true;
    sidecar->topology.count = 3;
    sidecar->topology.current_epoch = 9;
    sidecar->nodes[1] = (struct view_node){ .host = "10.0.0.2",
                                            .port = { 8002, 8002 },
                                            .silent = true };
    view->topology = &sidecar->topology;
    view->nodes = sidecar->nodes;
    view->silent = 1;
    view->primary = true;
    view->assigned = 16000;
    for (unsigned slot = 0; slot < 100; slot++) {
        view->state[slot] = slot == 70                ? SLOT_MISSING
                            : slot >= 64 && slot < 70 ? SLOT_HELD
                                                      : SLOT_SERVED;
    }
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        view->count[view->state[slot]]++;
    }
    sidecar->cluster.view = view;
    atomic_store(&sidecar->cluster.lease_ms, 1000);
    atomic_store(&sidecar->cluster.leases_lost, 5);
    rig->service.cluster = &sidecar->cluster;
    rig->service.slots.transfers = sidecar_rig_transfers;
}
