/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forks and syncs are persist's, which knows nothing of a latency monitor:
 * their times are fetched from there.
 */
#include "server/watch.h"

#include "admin/sampler.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "command/slow.h"

enum { US = 1000 }; /* in ns */

void
watch_tick(struct server *server)
{
    const struct service *service = &server->service;
    struct persist_info info;
    uint64_t sync_ns;

    sampler_look(service->sampler, clock_mono_ns());
    sync_ns = journal_take_longest_sync_ns(persist_journal(server->persist));
    if (sync_ns > 0) {
        slow_event(service, LATENCY_AOF_FSYNC, sync_ns);
    }
    persist_get_info(server->persist, &info);
    if (info.forks != server->forks_seen) {
        server->forks_seen = info.forks;
        slow_event(service, LATENCY_FORK, info.fork_us * US);
    }
}

void
watch_reclaimed(const struct service *service, uint64_t took_ns, bool more)
{
    metric_add(METRIC_EXPIRE_US, (int64_t)(took_ns / US));
    metric_add(METRIC_EXPIRE_CAPS, more);
    slow_event(service, LATENCY_EXPIRE_CYCLE, took_ns);
}
