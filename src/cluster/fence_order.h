/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A request for a fence by another daemon, or a command of an operator. Only
 * loop 0 may touch the sidecar, so the connection's loop posts the order to
 * loop 0's mailbox and waits for the answer. Both loops use the order until
 * each has called fence_order_drop(). The asking loop reads the answer once
 * `done` is set; loop 0 owns all other fields until then.
 */
#pragma once

#include "base/buf.h"
#include "cluster/sidecar_hooks.h"

#include <stdatomic.h>

struct candidate;

struct fence_order {
    struct fence_order *next; /* in a list of loop 0 */
    atomic_uint users;
    atomic_bool done; /* `answer` is set */
    struct sidecar_ask ask;
    char node[TOPOLOGY_ID_LEN + 1]; /* storage of ask.node */
    struct slot_set set;            /* storage of ask.set */
    struct sidecar_answer answer;
    struct slot_set granted; /* storage of answer.granted */
    char reason[256];        /* storage of answer.reason, if REFUSED */
    /* For slots that were let go: what was saved, and in which file. */
    uint64_t filters, items;
    char file[4096];
    /* For FORCE-SERVE: this server's filters and items, as slot_counts_write()
     * writes them, and then the candidates of all servers. */
    struct buf counts;
    struct candidate *candidates;
};

/* Returns an order with a copy of the question, and with two users. NULL: no
 * memory. */
struct fence_order *fence_order_new(const struct sidecar_ask *ask);

/* Takes one user of a struct fence_order away; the last one frees it. NULL is
 * fine. */
void fence_order_drop(void *ptr);
