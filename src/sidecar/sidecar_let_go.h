/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SIDECAR LET-GO: saves the filters of slots that no other server takes over to
 * a file in dir, and lets the slots go. Nothing else is executed while it
 * writes. Loop 0.
 */
#pragma once

struct fence_order;
struct sidecar_mode;

/* Carries the order out, and fills in its answer. */
void sidecar_let_go_order(struct sidecar_mode *mode, struct fence_order *order);
