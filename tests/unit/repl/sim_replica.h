/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hooks of a simulated server's replica side.
 */
#pragma once

#include "sim_data.h"

extern const struct replica_hooks sim_replica_hooks; /* without ctx */

/* Called for each new connection, for tests that choose where it ends; NULL: no
 * call. */
extern void (*node_dialled)(struct node *node, struct conn *conn);

/* Drops all replicas, so that they learn the new chain. One that was told the
 * old chain and has not sent PSYNC yet is refused. */
void node_change_chain(struct node *node, const char *why);
