/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the server as a whole refuses at present: writes, reads of data, because
 * of its role, its replicas, its disk or its start. Any loop.
 */
#pragma once

#include "engine/service.h"

static inline enum err
refusal_in(const _Atomic int *refusal)
{
    return (enum err)atomic_load_explicit(refusal, memory_order_relaxed);
}

static inline bool
refusal_flag(const atomic_bool *flag)
{
    return atomic_load_explicit(flag, memory_order_relaxed);
}

/* A primary with its data, in no doubt about its role, and with replicas
 * enough: nothing of replication is in anybody's way. */
static inline bool
refusal_is_none(const struct service *service)
{
    return __builtin_expect(!service->role.replica &&
                                !refusal_flag(&service->absent) &&
                                !refusal_flag(&service->few_replicas) &&
                                atomic_load_explicit(&service->grace_until_ms,
                                                     memory_order_relaxed) == 0,
                            1);
}

/* What else it is. Inside a gate section. flags: of the row. */
enum err refusal_of_writes_by_role(const struct service *service);
enum err refusal_of_data_by_role(const struct service *service, uint32_t flags);

/* What writes are refused with; OK if they are not. Inside a gate section,
 * and once in each that writes, since the server's end begins under the raised
 * gate, and so does another role. */
MUST_CHECK static inline enum err
refusal_of_writes(const struct service *service)
{
    enum err err = refusal_in(&service->write_refusal);

    return err != OK || refusal_is_none(service)
               ? err
               : refusal_of_writes_by_role(service);
}

/* What a command with these flags is refused with because the data is old, or
 * not here; likewise, for what reads. */
MUST_CHECK static inline enum err
refusal_of_data(const struct service *service, uint32_t flags)
{
    return refusal_is_none(service) ? OK
                                    : refusal_of_data_by_role(service, flags);
}

/* While it is true, the keyspace belongs to the loader; it ends once. */
static inline bool
refusal_is_loading(const struct service *service)
{
    return __builtin_expect(
        atomic_load_explicit(&service->loading, memory_order_acquire), 0);
}
