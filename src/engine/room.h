/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Eviction: makes room below maxmemory before a command takes its locks, as
 * maxmemory-policy says. The effect of each eviction is a DEL, so that whoever
 * repeats the journal has the same keys. A replica evicts nothing: it has what
 * its primary has. Belongs to the executing loop.
 */
#pragma once

#include "engine/service.h"

/* To be called while keyspace_is_over, inside a gate section, no stripe held.
 * Does a bounded amount of work: OK says that there is room or that some was
 * made (what does not fit nevertheless is refused where it asks for memory), or
 * that something else than memory keeps all writes from running.
 * ERR_OOM: nothing may be evicted. ERR_AGAIN: the journal has no room, as from
 * effect_open. */
MUST_CHECK enum err room_make(struct worker *worker);

/* Whether what may need memory may run: if maxmemory is set and exceeded, keys
 * are evicted as far as the policy lets it (also for what can go wrong). A
 * replica has the keys that its primary has, whatever they take. Inside a gate
 * section, no stripe held. */
MUST_CHECK static inline enum err
room_admit(struct worker *worker)
{
    uint64_t max = worker->service->memory.maxmemory_bytes;

    return max > 0 && !worker->service->role.replica && keyspace_is_over(max)
               ? room_make(worker)
               : OK;
}
