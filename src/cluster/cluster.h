/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all loops share in sidecar mode: the view of the cluster, and until when
 * it may be acted on. Loop 0 makes and changes it; the view changes under the
 * raised gate, so handlers read it inside their section of the gate.
 */
#pragma once

#include "cluster/view.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct cluster {
    const struct cluster_view *view; /* NULL: the neighbour was never read */
    /* The time of CLOCK_BOOTTIME from which on the server serves no slot,
     * unless the neighbour answers again. 0: it does not serve. */
    _Atomic uint64_t lease_until_ns;
    /* The time of CLOCK_BOOTTIME from which on the server serves no LEAVING
     * slot: half of a lease after the poll that first showed that our node has
     * lost one of them. */
    _Atomic uint64_t leaving_until_ns;

    /* Figures for INFO; loop 0 stores them. */
    atomic_bool neighbour_up;     /* logged in, and the last poll was good */
    _Atomic uint64_t lease_ms;    /* how long a lease is */
    _Atomic uint64_t polls;       /* polls that were answered */
    _Atomic uint64_t leases_lost; /* leases that ended without a renewal */
    _Atomic uint64_t views;       /* views made so far */
    _Atomic uint64_t cutover_ms;  /* what sidecar_cutover_ms() returned */
    _Atomic uint64_t waits_ms;    /* since when slots keep the server from
                                     following (CLOCK_MONOTONIC); 0: none do */
};

/* Returns whether the view may be acted on at this time. */
static inline bool
cluster_has_lease(const struct cluster *cluster, uint64_t now_ns)
{
    return now_ns <
           atomic_load_explicit(&cluster->lease_until_ns, memory_order_acquire);
}
