/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Figures of links and replicas, the chain of servers above us, and whether
 * enough replicas keep up.
 */
#include "roles/figures.h"

#include "base/clock.h"
#include "base/mem.h"
#include "persist/place.h"
#include "roles/replication_state.h"

void
figures_keep_chain(struct replication *r)
{
    char chain[WIRE_CHAIN_MAX][WIRE_ID_CHARS + 1];
    bool replica = replication_role(r).replica;
    size_t count;

    memset(chain, 0, sizeof(chain));
    count = replica ? replica_chain(r->replica, chain) : 0;
    pthread_mutex_lock(&r->shared.mutex);
    if (count != r->shared.chain_count ||
        memcmp(chain, r->shared.chain, count * sizeof(chain[0])) != 0) {
        r->shared.chain_count = count;
        memcpy(r->shared.chain, chain, sizeof(chain));
        atomic_fetch_add(&r->loop0->service->chain_changes, 1);
    }
    pthread_mutex_unlock(&r->shared.mutex);
}

size_t
figures_copy_chain(void *ctx, char (*ret_chain)[WIRE_ID_CHARS + 1])
{
    struct replication *r = ctx;
    size_t count;

    pthread_mutex_lock(&r->shared.mutex);
    count = r->shared.chain_count;
    memcpy(ret_chain, r->shared.chain, sizeof(r->shared.chain));
    pthread_mutex_unlock(&r->shared.mutex);
    return count;
}

/* Converts times of the run clock to the monotonic clock. So the ages that are
 * shown include pauses of this process. */
static void
show_times(struct status_figures *figures, struct status_replica *replicas,
           size_t count)
{
    uint64_t *times[] = { &figures->heard_mono_ms, &figures->down_mono_ms,
                          &figures->synced_mono_ms,
                          &figures->sync_heard_mono_ms };

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        *times[i] = run_clock_to_mono_ms(*times[i]);
    }
    for (size_t i = 0; i < count; i++) {
        replicas[i].acked_mono_ms =
            run_clock_to_mono_ms(replicas[i].acked_mono_ms);
        replicas[i].since_mono_ms =
            run_clock_to_mono_ms(replicas[i].since_mono_ms);
    }
}

static void
publish(struct replication *r)
{
    const struct service *service = r->loop0->service;
    struct status_figures figures;
    struct status_replica *replicas;
    size_t max = primary_replicas(r->primary);
    size_t count;

    memset(&figures, 0, sizeof(figures));
    replicas = mem_try_alloc((max + 1) * sizeof(*replicas));
    if (replicas == NULL) {
        return; /* the figures of the last tick remain */
    }
    count = primary_describe(r->primary, &figures, replicas, max);
    figures.backlog_active = persist_is_tapped(r->loop0->service->persist);
    figures.failover = r->failover.state;
    memcpy(figures.failover_error, r->failover.error,
           sizeof(figures.failover_error));
    replica_describe(r->replica, &figures);
    figures.epoch = r->epoch;
    figures.synced_once = r->following.synced_once;
    if (r->following.up.link != NULL) {
        link_peer_address(r->following.up.link, figures.link_address);
        link_local_address(r->following.up.link, figures.link_local_address);
        figures.link_id = r->following.up.id;
    }
    count = count < max ? count : max;
    show_times(&figures, replicas, count);
    status_publish(service->status, &figures, replicas, count);
    mem_free(replicas);
    figures_keep_chain(r);
}

/* Judges replicas by the time of the next tick. So writes are refused before a
 * lag exceeds the limit, not a tick later. */
void
figures_judge(struct service *service)
{
    const struct conf *conf = service->conf;
    size_t least = (size_t)conf->min_replicas_to_write;
    uint64_t lag_s = (uint64_t)conf->min_replicas_max_lag;
    uint64_t then_ms = clock_mono_ms() + REPLICATION_TICK_MS;
    bool few = least > 0 && lag_s > 0 &&
               status_count_good(service->status, then_ms, lag_s) < least;

    atomic_store(&service->few_replicas, few);
}

void
figures_show(struct replication *r)
{
    publish(r);
    gate_enter(replication_gate(r), 0);
    figures_judge(r->loop0->service);
    gate_leave(replication_gate(r), 0);
}

void
figures_settle(struct replication *r)
{
    if (r->figures_due) {
        r->figures_due = false;
        figures_show(r);
        service_wake_loops(r->loop0->service);
        replication_poke_failover(r);
    }
}
