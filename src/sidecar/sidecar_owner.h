/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Carries out what the state machine (cluster/sidecar.h) decides: changes the
 * role, publishes views, sends questions, pulls slots, and writes
 * slots.state. Loop 0.
 */
#pragma once

#include "cluster/sidecar_hooks.h"
#include "proto/answers.h"

struct fence_order;
struct sidecar_mode;

/* The hooks of the state machine; their ctx is the mode. */
extern const struct sidecar_hooks sidecar_owner_hooks;

/* Handles a reply of another daemon. It is called as colleague_fn
 * (dial/colleague.h). */
void sidecar_owner_answered(void *ctx, uint64_t number,
                            const struct answer *reply, const char *reason);

/* Handles a text from the link to our leader, which says what the leader holds.
 * False: the text is malformed. */
bool sidecar_owner_told(struct sidecar_mode *mode, struct slice text);

/* Executes an order. The mode takes over the caller's reference to the order,
 * and drops it when the order is answered. */
void sidecar_owner_take(struct sidecar_mode *mode, struct fence_order *order);

/* Answers the orders whose changes are on the disk, and those that change
 * nothing there. */
void sidecar_owner_answer(struct sidecar_mode *mode);

/* Tells the state machine how the pull goes, and follows our leader's daemon to
 * its new address if that has changed. */
void sidecar_owner_look(struct sidecar_mode *mode);
