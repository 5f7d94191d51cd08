/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the service derives from conf.
 */
#include "command/service.h"

void
service_limit_filters(struct service *service)
{
    static const struct keyspace_memory unlimited = { 0 };

    service->memory.maxmemory_bytes = service->conf->maxmemory;
    service->bloom_env = keyspace_env(
        &service->memory, (uint64_t)service->conf->bf_memory_usage_limit);
    if (service->obey_env.alloc == NULL) { /* may be in use; never changes */
        service->obey_env = keyspace_env(&unlimited, UINT64_MAX);
    }
}
