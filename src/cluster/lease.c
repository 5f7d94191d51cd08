/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/lease.h"

#include "base/err.h"
#include "cluster/sidecar_times.h"

#include <stdbool.h>

enum { MS = 1000000 };

uint64_t
lease_length_of(uint64_t node_timeout_ms)
{
    uint64_t lease_ms = node_timeout_ms / 4;

    return (lease_ms < LEASE_MAX_MS ? lease_ms : LEASE_MAX_MS) * MS;
}

/* Returns whether this answer ends a silence. A pause shorter than a lease is
 * no silence: other nodes cannot have replaced the neighbour meanwhile. */
static bool
ends_silence(const struct lease *lease, uint64_t sent_ns, uint64_t heard_ns)
{
    return lease->heard_ns == 0 || heard_ns - sent_ns > lease->poll_ns ||
           sent_ns > lease->heard_ns + lease->length_ns;
}

void
lease_answered(struct lease *lease, uint64_t sent_ns, uint64_t heard_ns)
{
    uint64_t until_ns = sent_ns + lease->length_ns;

    CHECK(heard_ns >= sent_ns);
    if (ends_silence(lease, sent_ns, heard_ns)) {
        lease->renew_from_ns = heard_ns + (uint64_t)LEASE_SETTLE_MS * MS;
    } else if (sent_ns >= lease->renew_from_ns && until_ns > lease->until_ns) {
        lease->until_ns = until_ns;
    }
    lease->heard_ns = heard_ns;
}

void
lease_ended(struct lease *lease)
{
    lease->until_ns = 0;
    lease->heard_ns = 0;
}
