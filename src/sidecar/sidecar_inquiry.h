/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Answers what other daemons ask this one, on any loop. What it holds is
 * answered from what loop 0 has published; fences wait for loop 0. One mutex, a
 * leaf.
 */
#pragma once

#include "cluster/fence_order.h"

struct service;
struct sidecar_inquiry;

/* Makes it, and sets the service's sidecar_calls. poke: makes loop 0 look at
 * orders; any thread calls it. */
struct sidecar_inquiry *sidecar_inquiry_new(struct service *service,
                                            void (*poke)(void *ctx), void *ctx);

/* Frees it, and refuses the orders that wait. NULL is fine. */
void sidecar_inquiry_free(struct sidecar_inquiry *inquiry);

/* Publishes what this server holds, before any other daemon can learn about the
 * change. Loop 0. */
void sidecar_inquiry_publish(struct sidecar_inquiry *inquiry,
                             const struct holdings *holdings);

/* Take the next order, or NULL, and give it back with its answer. Loop 0. */
struct fence_order *sidecar_inquiry_take(struct sidecar_inquiry *inquiry);
void sidecar_inquiry_answer(struct sidecar_inquiry *inquiry,
                            struct fence_order *order);
