/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FAILOVER: hands our role to a replica, or takes over a primary's. Loop 0,
 * unless a line says otherwise.
 */
#pragma once

#include "engine/service.h"

struct replication;

/* Begin and abort a failover. Any thread, inside the gate; they are called as
 * hooks (struct replication_calls). failover_ask() returns false, with a
 * reason, if there is a failover already. failover_abort() returns false if
 * there is none. */
bool failover_ask(void *ctx, const struct failover_order *order,
                  char *ret_reason, size_t size);
bool failover_abort(void *ctx);

/* Takes the next step of the failover that is under way. */
void failover_tick(struct replication *r);

/* Begins to lead because our primary asks for it. Returns false, with a reason,
 * if that is impossible. */
bool failover_take_over(struct replication *r, const struct handover *from,
                        char *ret_reason, size_t size);
