/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemons beside the nodes of the cluster. Each has an index, by which
 * slots refer to it. Nodes may come and go for ever: the index of a node that
 * has left is used again once nothing refers to it.
 */
#pragma once

#include "cluster/sidecar_state.h"

void sidecar_peers_init(struct sidecar *sidecar);
void sidecar_peers_fini(struct sidecar *sidecar);

/* Returns the index of a node's daemon; adds it if it is new. */
uint16_t sidecar_peer_of(struct sidecar *sidecar, const char *id);

/* Forgets the daemons of nodes that are not in the topology any more, if no
 * slot and no question refers to them. */
void sidecar_peers_forget(struct sidecar *sidecar);
