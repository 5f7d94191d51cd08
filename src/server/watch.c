/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The journal measures its syncs, but does not know the latency monitor. So
 * watch_tick() fetches the longest time.
 */
#include "server/watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/reserve.h"
#include "engine/audit.h"
#include "engine/slow.h"
#include "measure/sampler.h"
#include "persist/figures.h"
#include "server/server_state.h"
#include "server/web.h"

enum { US = 1000 }; /* in ns */

static void
warn_of_memory(struct server *server)
{
    uint64_t asked = reserve_asked();

    if (asked != server->reserve_seen) {
        server->reserve_seen = asked;
        log_repeated(LOG_WARN, "server.memory",
                     "memory has ended, clients that ask for more get errors",
                     "used_memory=%llu reserve_used=%zu reserve=%u",
                     (unsigned long long)mem_used(), reserve_used(),
                     (unsigned)RESERVE_BYTES);
    }
}

static void
warn_of_clock(struct server *server)
{
    int64_t jump_ms =
        clock_jump_ms(&server->clock_pace, clock_wall_ms(), clock_boot_ns());

    if (jump_ms != 0) {
        log_warn("server.clock",
                 "the clock was set: times to live end earlier or later, and "
                 "ageing filters lose items early (clock set ahead), or forget "
                 "none until it has caught up (clock set back); BF.RESET "
                 "begins a filter anew",
                 "by_ms=%lld", (long long)jump_ms);
    }
}

void
watch_tick(struct server *server)
{
    const struct service *service = &server->service;
    uint64_t sync_ns;

    warn_of_memory(server);
    warn_of_clock(server);
    audit_tick();
    sampler_run(service->sampler, clock_mono_ns());
    web_tick(server->web);
    sync_ns = journal_take_longest_sync_ns(persist_journal(server->persist));
    if (sync_ns > 0) {
        slow_event(service, LATENCY_AOF_FSYNC, sync_ns);
    }
}

void
watch_reclaimed(const struct service *service, uint64_t took_ns, bool more)
{
    metric_add(METRIC_EXPIRE_US, (int64_t)(took_ns / US));
    metric_add(METRIC_EXPIRE_CAPS, more);
    slow_event(service, LATENCY_EXPIRE_CYCLE, took_ns);
}
