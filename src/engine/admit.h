/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether a command may run: is the request as it must be, and is the server
 * in a state for it. Both also hold for commands that MULTI queues. Pure but
 * for worker->detail.
 */
#pragma once

#include "engine/request.h"
#include "engine/room.h"

/* What is wrong with the request: an unknown name, the arity, no AUTH, not
 * allowed in MULTI. words: of the name. */
MUST_CHECK enum err admit_request(struct request *req, unsigned words);

/* What the server cannot do now, in Redis's order: memory, disk, replicas, the
 * role, stale data, loading. ERR_AGAIN: it has to wait for the end of CLIENT
 * PAUSE, and is parked. Everything is possible for who obeys. Inside a gate
 * section. */
MUST_CHECK enum err admit_now(const struct request *req);

/* Whether what may need memory may run: if maxmemory is set and exceeded, keys
 * are evicted as far as the policy lets it (engine/room.h, also for what can
 * go wrong). A replica has the keys that its primary has, whatever they take.
 * Inside a gate section, no stripe held. */
MUST_CHECK static inline enum err
admit_growth(struct worker *worker)
{
    uint64_t max = worker->service->memory.maxmemory_bytes;

    return max > 0 && !worker->service->role.replica && keyspace_is_over(max)
               ? room_make(worker)
               : OK;
}

static inline enum err
admit_refusal(const _Atomic int *refusal)
{
    return (enum err)atomic_load_explicit(refusal, memory_order_relaxed);
}

static inline bool
admit_flag(const atomic_bool *flag)
{
    return atomic_load_explicit(flag, memory_order_relaxed);
}

/* A primary with its data, in no doubt about its role, and with replicas
 * enough: nothing of replication is in anybody's way. */
static inline bool
admit_is_plain(const struct service *service)
{
    return __builtin_expect(!service->role.replica &&
                                !admit_flag(&service->absent) &&
                                !admit_flag(&service->few_replicas) &&
                                atomic_load_explicit(&service->grace_until_ms,
                                                     memory_order_relaxed) == 0,
                            1);
}

/* What else it is. Inside a gate section. flags: of the row. */
enum err admit_writes_for_role(const struct service *service);
enum err admit_data_for_role(const struct service *service, uint32_t flags);

/* What writes are refused with; OK if they are not. Inside a gate section,
 * and once in each that writes, since the server's end begins under the raised
 * gate, and so does another role. */
MUST_CHECK static inline enum err
admit_writes(const struct service *service)
{
    enum err err = admit_refusal(&service->write_refusal);

    return err != OK || admit_is_plain(service)
               ? err
               : admit_writes_for_role(service);
}

/* What a command with these flags is refused with because the data is old, or
 * not here; likewise, for what reads. */
MUST_CHECK static inline enum err
admit_data(const struct service *service, uint32_t flags)
{
    return admit_is_plain(service) ? OK : admit_data_for_role(service, flags);
}

/* While it is true, the keyspace belongs to the loader; it ends once. */
static inline bool
admit_is_loading(const struct service *service)
{
    return __builtin_expect(
        atomic_load_explicit(&service->loading, memory_order_acquire), 0);
}
