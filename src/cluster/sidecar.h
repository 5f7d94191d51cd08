/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state machine of sidecar mode: from what the neighbour says to what this
 * server serves. It gets the result of each look at the neighbour, and says
 * which view and which lease to publish. No I/O and no clock; all times are of
 * CLOCK_BOOTTIME, in ns. Belongs to loop 0.
 *
 * The lease. The server may serve its slots while its neighbour has said within
 * the lease's length that it owns them. The time counts from when the question
 * was sent. A neighbour that was stopped may answer what it last knew, so the
 * first answer after a silence renews no lease, and neither does a question
 * that was sent less than SIDECAR_SETTLE_NS after that answer.
 */
#pragma once

#include "cluster/view.h"

#include <stdbool.h>
#include <stdint.h>

#define SIDECAR_SETTLE_NS UINT64_C(20000000)

struct sidecar_options {
    uint64_t poll_ns;  /* between two looks; a later answer ends a silence */
    uint64_t lease_ns; /* 0: from the neighbour's cluster-node-timeout */
    struct view_options view; /* its settings are replaced by the neighbour's */
};

/* The result of one look. */
struct sidecar_poll {
    uint64_t sent_ns, heard_ns;
    /* Taken. NULL: the neighbour says the same as last time, or nothing good.
     */
    struct topology *topology;
    bool failed; /* it answered with an error or not at all */
    bool gone;   /* the connection ended, or was refused */
};

struct sidecar_outcome {
    struct cluster_view *view; /* to publish, the caller's; NULL: as before */
    uint64_t lease_until_ns;   /* 0: serve nothing */
    bool no_memory; /* for the view: the topology is lost, and no lease begins
                       until another one comes */
};

struct sidecar;

/* Options are borrowed for the sidecar's life. */
struct sidecar *sidecar_new(const struct sidecar_options *options);
void sidecar_free(struct sidecar *sidecar); /* NULL is fine */

/* Takes over the neighbour's options. They count from the next topology on. */
void sidecar_set(struct sidecar *sidecar,
                 const struct cluster_settings *settings);

/* Takes one look into account. */
void sidecar_polled(struct sidecar *sidecar, struct sidecar_poll *poll,
                    struct sidecar_outcome *ret_outcome);

/* Returns the length of a lease. */
uint64_t sidecar_lease_ns(const struct sidecar *sidecar);
