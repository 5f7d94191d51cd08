/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes an operator's commands about slots. Loop 0.
 *
 * SIDECAR LET-GO saves the filters of slots that no other server takes over to
 * a file in dir, and lets the slots go. Nothing else is executed while it
 * writes.
 *
 * SIDECAR FORCE-SERVE is for slots whose newest data is lost. It asks all
 * servers what data of the slots they have, and chooses among their data
 * (sidecar_force_serve).
 */
#pragma once

#include "proto/answers.h"

#include <stdbool.h>
#include <stdint.h>

struct fence_order;
struct sidecar_mode;

/* Executes the order, and fills in its answer. */
void sidecar_word_let_go(struct sidecar_mode *mode, struct fence_order *order);

/* Executes the order, and fills in its answer. False: the answer follows when
 * other servers have answered. */
bool sidecar_word_force(struct sidecar_mode *mode, struct fence_order *order);

/* Handles a reply, as a colleague_fn does. False: the reply is to another
 * question. */
bool sidecar_word_answered(struct sidecar_mode *mode, uint64_t number,
                           const struct answer *reply, const char *reason);

/* Drops the orders that are not answered, when the server stops. */
void sidecar_word_stop(struct sidecar_mode *mode);
