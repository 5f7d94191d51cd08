/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Answers questions of other daemons, on any loop. Questions for holdings are
 * answered from the text that loop 0 has published; its mutex is a leaf. Orders
 * go to loop 0 by its mailbox, and wait for the answer.
 */
#pragma once

#include "cluster/fence_order.h"

struct loop0;
struct sidecar_inquiry;

/* Makes the inquiry, and sets the service's sidecar_calls. On loop 0, `take`
 * gets each order, and gives it to sidecar_inquiry_answer or drops it. */
struct sidecar_inquiry *
sidecar_inquiry_new(const struct loop0 *loop0,
                    void (*take)(void *ctx, struct fence_order *order),
                    void *ctx);

/* Frees the inquiry. Call it after the loops have ended. NULL is fine. */
void sidecar_inquiry_free(struct sidecar_inquiry *inquiry);

/* Publishes what this server holds, before any other daemon can learn about the
 * change. Loop 0. */
void sidecar_inquiry_publish(struct sidecar_inquiry *inquiry,
                             const struct holdings *holdings);

/* Returns an order with its answer to the loop that asked. Loop 0. */
void sidecar_inquiry_answer(struct sidecar_inquiry *inquiry,
                            struct fence_order *order);
