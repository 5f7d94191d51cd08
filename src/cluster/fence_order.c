/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/fence_order.h"

#include "base/mem.h"
#include "cluster/candidates.h"

#include <stdio.h>

struct fence_order *
fence_order_new(const struct sidecar_ask *ask)
{
    struct fence_order *order = mem_try_zalloc(sizeof(*order));

    if (order == NULL) {
        return NULL;
    }
    atomic_init(&order->users, 2);
    order->ask = *ask;
    (void)snprintf(order->node, sizeof(order->node), "%s", ask->node);
    order->set = *ask->set;
    order->ask.node = order->node;
    order->ask.set = &order->set;
    return order;
}

void
fence_order_drop(void *ptr)
{
    struct fence_order *order = ptr;

    if (order != NULL && atomic_fetch_sub(&order->users, 1) == 1) {
        buf_free(&order->counts);
        candidates_free(order->candidates);
        mem_free(order);
    }
}
