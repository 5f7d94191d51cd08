/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Eviction: frees memory below maxmemory before a command takes its locks, as
 * maxmemory-policy says. The effect of each eviction is a DEL, so that a replay
 * of the log has the same keys. A replica evicts nothing: it has the keys of
 * its primary. Belongs to the executing loop.
 */
#pragma once

#include "engine/service.h"

/* Evicts a bounded number of keys. Called while keyspace_is_over, inside a
 * section of the gate, with no stripe locked. OK: memory was freed (a command
 * for which that is not enough is refused where it allocates), or writes are
 * refused for another reason than memory. ERR_OOM: the policy allows no key to
 * be evicted. ERR_AGAIN: the journal's queue is full, as from effect_open. */
MUST_CHECK enum err room_make(struct worker *worker);

/* Decides whether a command that may need memory may run. If maxmemory is set
 * and exceeded, keys are evicted first, as far as the policy allows. Fails as
 * room_make does. A replica keeps the keys of its primary, however much memory
 * they need. Inside a section of the gate, with no stripe locked. */
MUST_CHECK static inline enum err
room_admit(struct worker *worker)
{
    uint64_t max = worker->service->memory.maxmemory_bytes;

    return max > 0 && !worker->service->role.replica && keyspace_is_over(max)
               ? room_make(worker)
               : OK;
}
