/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The refusals that follow from the role.
 */
#include "engine/refusal.h"

#include "access/table.h"
#include "base/run_clock.h"

/* A replica refuses writes. A primary refuses them in the grace after its
 * start, and with too few replicas. Any server refuses them while its data is
 * absent. */
enum err
refusal_of_writes_slow(const struct service *service)
{
    uint64_t grace_until_ms = atomic_load(&service->grace_until_ms);

    if (service->role.replica) {
        return ERR_READONLY;
    }
    if (run_clock_ms() < grace_until_ms) {
        return grace_until_ms == GRACE_BEHIND ? ERR_BEHIND : ERR_START_GRACE;
    }
    if (atomic_load(&service->few_replicas)) {
        return ERR_NOREPLICAS;
    }
    return atomic_load(&service->absent) ? ERR_LOADING : OK;
}

/* Commands that change the role always run, above all while the server waits
 * for the data of a primary that is gone. */
static bool
needs_no_data(uint32_t flags)
{
    const uint32_t manages = CMD_ADMIN | CMD_STALE;

    return (flags & CMD_LOADING) != 0 || (flags & manages) == manages;
}

enum err
refusal_of_data_slow(const struct service *service, uint32_t flags)
{
    if (service->role.replica && (flags & CMD_STALE) == 0 &&
        !atomic_load(&service->link_up) &&
        !service->conf->replica_serve_stale_data) {
        return ERR_MASTERDOWN;
    }
    return atomic_load(&service->absent) && !needs_no_data(flags) ? ERR_LOADING
                                                                  : OK;
}
