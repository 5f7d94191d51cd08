/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What other daemons ask of this one, on any loop: what it holds, which loop 0
 * has published, and fences, which wait for loop 0. One mutex, a leaf.
 */
#pragma once

#include "cluster/fence_order.h"

struct service;
struct sidecar_inquiry;

/* Sets the service's sidecar_calls. poke: has loop 0 look at orders; any thread
 * calls it. */
struct sidecar_inquiry *sidecar_inquiry_new(struct service *service,
                                            void (*poke)(void *ctx), void *ctx);

/* Refuses what waits. NULL is fine. */
void sidecar_inquiry_free(struct sidecar_inquiry *inquiry);

/* Publishes what is held, before any other daemon can learn that it changes.
 * Loop 0. */
void sidecar_inquiry_publish(struct sidecar_inquiry *inquiry,
                             const struct holdings *holdings);

/* Takes the next order, or NULL; and gives it back, with its answer. Loop 0. */
struct fence_order *sidecar_inquiry_take(struct sidecar_inquiry *inquiry);
void sidecar_inquiry_answer(struct sidecar_inquiry *inquiry,
                            struct fence_order *order);
