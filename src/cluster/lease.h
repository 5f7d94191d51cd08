/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lease says until when this server may act on what its neighbour has said.
 * The server may serve its slots if, within the length of a lease, its
 * neighbour has said that it owns them. The time counts from when the question
 * was sent. A neighbour that was stopped may answer what it knew before. So the
 * first answer after a silence renews no lease, nor do questions that were sent
 * less than LEASE_SETTLE_MS after that answer. A time in which this server was
 * stopped, perhaps together with the neighbour, is a silence, too.
 *
 * No I/O and no clock; all times are of CLOCK_BOOTTIME, in ns. Belongs to
 * loop 0.
 */
#pragma once

#include <stdint.h>

struct lease {        /* begins with zeros, except poll_ns and length_ns */
    uint64_t poll_ns; /* time between two polls; an answer that took longer ends
                         a silence */
    uint64_t length_ns;     /* length of a lease */
    uint64_t until_ns;      /* end of the lease; 0: the server serves nothing */
    uint64_t renew_from_ns; /* questions sent earlier renew nothing */
    uint64_t heard_ns;      /* the last answer; 0: none on this connection */
};

/* Returns the length of a lease that follows from the neighbour's
 * cluster-node-timeout. */
uint64_t lease_length_of(uint64_t node_timeout_ms);

/* Notes an answer of the neighbour. */
void lease_answered(struct lease *lease, uint64_t sent_ns, uint64_t heard_ns);

/* Notes that the connection to the neighbour has ended, or was refused. */
void lease_ended(struct lease *lease);
