/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Until when this server may act on what its neighbour has said: the lease. The
 * server may serve its slots while its neighbour has said within the lease's
 * length that it owns them. The time counts from when the question was sent. A
 * neighbour that was stopped may answer what it last knew, so the first answer
 * after a silence renews no lease, and neither does a question that was sent
 * less than LEASE_SETTLE_MS after that answer. It is a silence, too, when this
 * server was stopped, perhaps together with the neighbour.
 *
 * No I/O and no clock; all times are of CLOCK_BOOTTIME, in ns. Belongs to
 * loop 0.
 */
#pragma once

#include <stdint.h>

struct lease {          /* begins with zeros, but for poll_ns and length_ns */
    uint64_t poll_ns;   /* between two looks; a later answer ends a silence */
    uint64_t length_ns; /* of a lease */
    uint64_t until_ns;  /* 0: it serves nothing */
    uint64_t renew_from_ns; /* earlier questions renew nothing */
    uint64_t heard_ns;      /* the last answer; 0: none on this connection */
};

/* Returns the length of a lease that follows from the neighbour's
 * cluster-node-timeout. */
uint64_t lease_length_of(uint64_t node_timeout_ms);

/* The neighbour has answered. */
void lease_answered(struct lease *lease, uint64_t sent_ns, uint64_t heard_ns);

/* The connection to the neighbour has ended, or was refused. */
void lease_ended(struct lease *lease);
