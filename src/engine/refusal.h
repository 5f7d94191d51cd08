/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Says what the server as a whole refuses at present (writes, PING, any use of
 * data) because of its role, its replicas, its disk or its start. Any loop.
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

/* Returns whether replication refuses nothing: the server is a primary with its
 * data, sure of its role, and with enough replicas. */
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

/* Do what refusal_of_writes() and refusal_of_data() do, for a server for which
 * refusal_is_none() is false. Inside a section of the gate. flags: those of the
 * row. */
enum err refusal_of_writes_slow(const struct service *service);
enum err refusal_of_data_slow(const struct service *service, uint32_t flags);

/* Returns the error with which writes are refused, or OK. Once in each section
 * of the gate that writes is enough, since shutdown and a new role begin under
 * the raised gate. */
MUST_CHECK static inline enum err
refusal_of_writes(const struct service *service)
{
    enum err err = refusal_in(&service->write_refusal);

    return err != OK || refusal_is_none(service)
               ? err
               : refusal_of_writes_slow(service);
}

/* Returns the error with which PING alone is refused, or OK. A Sentinel that
 * gets an error for PING considers the server dead. */
MUST_CHECK static inline enum err
refusal_of_ping(const struct service *service)
{
    bool behind = service_is_behind(service);

    return behind ? ERR_BEHIND : refusal_in(&service->ping_refusal);
}

/* Returns the error for a command with these flags because the data is stale or
 * absent, or OK. Inside a section of the gate. */
MUST_CHECK static inline enum err
refusal_of_data(const struct service *service, uint32_t flags)
{
    return refusal_is_none(service) ? OK : refusal_of_data_slow(service, flags);
}

/* Returns whether the loader still owns the keyspace. After the start's loading
 * it stays false. */
static inline bool
refusal_is_loading(const struct service *service)
{
    return __builtin_expect(
        atomic_load_explicit(&service->loading, memory_order_acquire), 0);
}
