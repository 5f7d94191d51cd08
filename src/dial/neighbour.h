/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looks at the neighbour, the cluster node of sidecar-of: one link, on which it
 * logs in and then asks, every sidecar-poll-ms, for CLUSTER NODES, INFO and
 * MYID in one transaction, which is one consistent view. From time to time it
 * asks for those options of the neighbour that this server must follow, too. A
 * link that ends is dialled again. On loop 0; the hooks are called from there.
 */
#pragma once

#include "cluster/view.h"

struct loop0;
struct neighbour;

/* The result of one look; the times are of CLOCK_BOOTTIME. */
struct neighbour_poll {
    uint64_t sent_ns, heard_ns;
    /* The hook owns it. NULL: the neighbour's answer is the same as last time,
     * or no good one. */
    struct topology *topology;
    bool failed; /* it answered with an error or not at all */
    bool gone;   /* the connection ended, or was refused */
};

struct neighbour_hooks {
    /* A look has ended: well, with an error, or because the link ended. */
    void (*polled)(void *ctx, const struct neighbour_poll *poll);
    /* The neighbour's options were read for the first time on a link, or have
     * changed. The next look brings the topology again. */
    void (*settled)(void *ctx, const struct cluster_settings *settings);
    void *ctx;
};

/* The address of the neighbour. */
struct neighbour_address {
    char host[TOPOLOGY_HOST_MAX]; /* or the path of a unix socket */
    unsigned port;                /* 0: it is a path */
};

/* Parses sidecar-of: host:port, [v6]:port, or a path, which has a slash. False:
 * malformed. */
bool neighbour_parse(const char *text, struct neighbour_address *ret_address);

struct neighbour *neighbour_new(const struct loop0 *loop0,
                                const struct neighbour_address *address,
                                const struct neighbour_hooks *hooks);
void neighbour_free(struct neighbour *neighbour);

/* neighbour_start() begins to dial. neighbour_stop() closes the link and the
 * timers, when the server stops. */
void neighbour_start(struct neighbour *neighbour);
void neighbour_stop(struct neighbour *neighbour);

/* Makes the next look bring the topology, even if it has not changed. */
void neighbour_forget(struct neighbour *neighbour);

/* Makes a look now, if none is under way. */
void neighbour_hurry(struct neighbour *neighbour);

/* Returns whether the last look was answered well. */
bool neighbour_is_up(const struct neighbour *neighbour);
