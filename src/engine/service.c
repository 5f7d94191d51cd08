/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the service derives from conf.
 */
#include "engine/service.h"

#include "access/users.h"
#include "cluster/cluster.h"
#include "journal/journal.h"
#include "keyspace/access.h"
#include "keyspace/memory.h"
#include "persist/persist.h"

void
service_follow_conf(struct service *service)
{
    static const struct keyspace_memory unlimited = { 0 };

    const struct conf *conf = service->conf;
    const struct access_policy access = {
        .counts = conf_policy_is_lfu(conf),
        .log_factor = (uint32_t)conf->lfu_log_factor,
        .decay_minutes = (uint32_t)conf->lfu_decay_time,
    };

    if (service->users != NULL) {
        users_follow_password(service->users, slice_of(conf->requirepass));
    }
    atomic_store_explicit(&service->dialect, conf->dialect,
                          memory_order_relaxed);
    access_set_policy(keyspace_access(service->keyspace), &access);
    service->memory.maxmemory_bytes = conf->maxmemory;
    service->memory.shares = true;
    service->memory.evicts = conf->maxmemory_policy != CONF_POLICY_NOEVICTION;
    service->bloom_env =
        keyspace_env(&service->memory, (uint64_t)conf->bf_memory_usage_limit);
    if (service->obey_env.alloc == NULL) { /* set once: it may be in use */
        service->obey_env = keyspace_env(&unlimited, UINT64_MAX);
    }
}

uint32_t
service_databases(const struct service *service)
{
    const struct cluster *cluster = service->cluster;
    uint32_t databases = (uint32_t)service->conf->databases;
    uint32_t allowed = 1;

    if (cluster == NULL) {
        return databases;
    }
    if (cluster->view != NULL && cluster->view->settings.databases > 0) {
        allowed = cluster->view->settings.databases;
    }
    return allowed < databases ? allowed : databases;
}

void
service_wake_loops(const struct service *service)
{
    if (service->wake_loops != NULL) {
        service->wake_loops(service->ctx);
    }
}

bool
service_takes_logs(const struct service *service)
{
    struct journal *journal = persist_journal(service->persist);
    struct journal_status status;

    if (persist_parks(service->persist) != PARKS_NOTHING ||
        atomic_load(&service->ending) != SERVICE_RUNS) {
        return false;
    }
    if (journal_has_room(journal)) {
        return true;
    }
    journal_get_status(journal, &status);
    return status.faulted;
}
