/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The arithmetic of planning: what filters of one size take of the servers of a
 * cluster, or of a primary with replicas. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    CAPACITY_KEY_BYTES = 100, /* of a key with a name of 40 bytes; measured */
    CAPACITY_PROCESS_BYTES = 16 << 20,
    CAPACITY_SERVERS_MAX = 4096, /* TOPOLOGY_NODES_MAX */
    CAPACITY_PRIMARIES_MAX = 1000
};

/* Bytes a second of a full synchronization, and of slots that move, between two
 * servers on one machine with two cores (packaging/doc/cluster.md). */
#define CAPACITY_SYNC_RATE UINT64_C(400000000)
#define CAPACITY_MOVE_RATE UINT64_C(270000000)

struct capacity_wish {
    uint64_t filters, filter_bytes; /* at least 1 */
    uint64_t primaries;             /* at least 1 */
    uint64_t replicas;              /* of each primary */
    uint64_t move_slots; /* 0: what a primary more would get of them */
    uint64_t sync_rate, move_rate; /* bytes a second; at least 1 */
    uint64_t beside_bytes; /* that a server has for buffers, beside a tenth of
                              its filters for clients */
};

struct capacity {
    uint64_t servers;
    uint64_t all_bytes; /* of filters and their keys */
    /* Of the primary that gets the most filters, since names spread them by
     * chance: the mean and three standard deviations. */
    uint64_t most_filters, most_bytes;
    uint64_t server_bytes;  /* memory of the machine or container */
    uint64_t syncing_bytes; /* the same, if a full synchronization has to fit
                               beside the filters that are served meanwhile */
    double sync_seconds;
    uint64_t move_slots, move_bytes; /* on average */
    double move_seconds;
};

/* False: the bytes are more than 64 bits hold. */
bool capacity_compute(const struct capacity_wish *wish,
                      struct capacity *ret_capacity);
