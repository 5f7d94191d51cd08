/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FAILOVER: hands our role to a replica, or takes over a primary's. Loop 0,
 * unless a line says otherwise.
 */
#pragma once

#include "engine/service.h"

struct replication;

/* Begins or aborts a failover. Any thread, inside the gate; they have the types
 * of hooks. False: there is one already (with a reason), or none to abort. */
bool failover_ask(void *ctx, const struct failover_order *order,
                  char *ret_reason, size_t size);
bool failover_abort(void *ctx);

/* Continues the failover that is under way. */
void failover_tick(struct replication *r);

/* Begins to lead because our primary asks for it. False: it cannot, with a
 * reason. */
bool failover_take_over(struct replication *r, const struct handover *from,
                        char *ret_reason, size_t size);
