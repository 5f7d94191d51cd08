/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A fence that another daemon asks for, or what an operator does, on its way
 * from the loop of its connection to loop 0, which alone may touch the sidecar,
 * and back. Both have the order until each has let go of it.
 */
#pragma once

#include "base/buf.h"
#include "cluster/sidecar_hooks.h"

#include <stdatomic.h>

struct candidate;

struct fence_order {
    struct fence_order *next; /* of a queue of its owner's */
    atomic_uint users;
    atomic_bool done; /* the answer is there: the asking loop may read it */
    struct sidecar_ask ask;
    char node[TOPOLOGY_ID_LEN + 1]; /* of the ask */
    struct slot_set set;            /* likewise */
    struct sidecar_answer answer;
    struct slot_set granted; /* of the answer */
    char reason[256];        /* likewise, of one that was REFUSED */
    /* Of slots that were let go: what was saved, and where. */
    uint64_t filters, items;
    char file[4096];
    /* FORCE-SERVE: filters and items of this server, as cluster/candidates.h
     * writes them, and then what each server has. */
    struct buf counts;
    struct candidate *candidates;
};

/* Returns a copy of the question, with two users. NULL without memory. */
struct fence_order *fence_order_new(const struct sidecar_ask *ask);

/* Lets go of it; the last user frees it. NULL is fine. */
void fence_order_drop(struct fence_order *order);
