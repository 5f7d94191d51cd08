/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether a command may run: is the request as it must be, and is the server
 * in a state for it. Both also hold for commands that MULTI queues. Pure but
 * for worker->detail.
 */
#pragma once

#include "command/request.h"
#include "command/room.h"

/* What is wrong with the request: an unknown name, the arity, no AUTH, not
 * allowed in MULTI. words: of the name. */
MUST_CHECK enum err admit_request(struct request *req, unsigned words);

/* What the server cannot do now, in Redis's order: memory, disk, loading.
 * ERR_AGAIN: it has to wait for the end of CLIENT PAUSE, and is parked.
 * Everything is possible for who obeys. Inside a gate section. */
MUST_CHECK enum err admit_now(const struct request *req);

/* Whether what may need memory may run: if maxmemory is set and exceeded, keys
 * are evicted as far as the policy lets it (command/room.h, also for what can
 * go wrong). Inside a gate section, no stripe held. */
MUST_CHECK static inline enum err
admit_growth(struct worker *worker)
{
    uint64_t max = worker->service->memory.maxmemory_bytes;

    return max > 0 && keyspace_is_over(max) ? room_make(worker) : OK;
}

static inline enum err
admit_refusal(const _Atomic int *refusal)
{
    return (enum err)atomic_load_explicit(refusal, memory_order_relaxed);
}

/* What writes are refused with; OK if they are not. Inside a gate section,
 * and once in each that writes, since the server's end begins under the raised
 * gate. */
MUST_CHECK static inline enum err
admit_writes(const struct service *service)
{
    return admit_refusal(&service->write_refusal);
}

/* While it is true, the keyspace belongs to the loader; it ends once. */
static inline bool
admit_is_loading(const struct service *service)
{
    return __builtin_expect(
        atomic_load_explicit(&service->loading, memory_order_acquire), 0);
}
