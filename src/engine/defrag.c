/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The allocator's figures decide whether a turn over the keyspace begins: once
 * a second while none runs, and at the end of each. If a turn has moved less
 * than one key in 64, the remaining waste is not in filters, or they lie well
 * enough: then the next turn waits for REST_S.
 */
#include "engine/defrag.h"

#include "base/allocator.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "conf/conf.h"
#include "keyspace/defrag.h"
#include "keyspace/gate.h"

enum {
    SLICE_US = 200, /* shortest slice; longer if a pause of 1 ms is too long */
    IDLE_MS = 1000,
    REST_S = 10,
    FEW = 64 /* a turn that moves less than 1 key in 64 moves hardly any */
};

static const uint64_t SECOND_NS = 1000000000;

unsigned
defrag_effort(const struct conf *conf, uint64_t used_bytes,
              uint64_t wasted_bytes)
{
    int64_t lower = conf->active_defrag_threshold_lower;
    int64_t upper = conf->active_defrag_threshold_upper;
    int64_t least = conf->active_defrag_cycle_min;
    int64_t most = conf->active_defrag_cycle_max;
    double percent =
        used_bytes > 0 ? 100.0 * (double)wasted_bytes / (double)used_bytes : 0;
    double share;

    if (!conf->activedefrag || !conf->bf_defrag_enabled ||
        wasted_bytes < (uint64_t)conf->active_defrag_ignore_bytes ||
        percent < (double)lower) {
        return 0;
    }
    if (percent >= (double)upper || most <= least) {
        return (unsigned)(most > least ? most : least);
    }
    share = (percent - (double)lower) / (double)(upper - lower);
    return (unsigned)(least + (int64_t)((double)(most - least) * share));
}

static void
set_running(struct service *service, struct defrag *defrag, unsigned percent,
            uint64_t now_ns)
{
    uint64_t since_ns =
        atomic_load_explicit(&service->defrag_since_ns, memory_order_relaxed);

    if (percent == 0 && since_ns > 0) {
        metric_add(METRIC_DEFRAG_MS, (int64_t)((now_ns - since_ns) / 1000000));
    }
    if (percent == 0 || since_ns == 0) {
        atomic_store(&service->defrag_since_ns, percent > 0 ? now_ns : 0);
    }
    defrag->percent = percent;
    atomic_store(&service->defrag_percent, percent);
}

static void
look_at_allocator(struct defrag *defrag, struct service *service,
                  uint64_t now_ns)
{
    struct allocator_figures figures;
    unsigned percent = 0;

    defrag->looked_ns = now_ns;
    if (service->conf->activedefrag && now_ns >= defrag->rests_until_ns &&
        allocator_get_figures(&figures)) {
        percent = defrag_effort(service->conf, figures.allocated,
                                figures.active - figures.allocated);
    }
    set_running(service, defrag, percent, now_ns);
}

static void
count(const struct defrag_sums *sums)
{
    metric_add(METRIC_DEFRAG_HITS, (int64_t)sums->all.moved);
    metric_add(METRIC_DEFRAG_MISSES, (int64_t)sums->all.stayed);
    metric_add(METRIC_DEFRAG_KEY_HITS, (int64_t)sums->keys.moved);
    metric_add(METRIC_DEFRAG_KEY_MISSES, (int64_t)sums->keys.stayed);
    metric_add(METRIC_BF_DEFRAG_HITS, (int64_t)sums->filters.moved);
    metric_add(METRIC_BF_DEFRAG_MISSES, (int64_t)sums->filters.stayed);
}

static void
end_turn(struct defrag *defrag, struct service *service, uint64_t now_ns)
{
    if (defrag->moved < (defrag->moved + defrag->stayed) / FEW + 1) {
        defrag->rests_until_ns = now_ns + REST_S * SECOND_NS;
    }
    defrag->moved = defrag->stayed = 0;
    look_at_allocator(defrag, service, now_ns);
}

uint64_t
defrag_run(struct defrag *defrag, struct worker *worker)
{
    struct service *service = worker->service;
    struct keyspace *ks = service->keyspace;
    struct defrag_sums sums = { 0 };
    uint64_t began_ns = clock_mono_ns();
    uint64_t slice_us;
    bool ended;

    if (began_ns >= defrag->looked_ns + SECOND_NS &&
        (defrag->percent == 0 || !service->conf->activedefrag)) {
        look_at_allocator(defrag, service, began_ns);
    }
    if (defrag->percent == 0) {
        return IDLE_MS;
    }
    slice_us =
        defrag->percent * 10 > SLICE_US ? defrag->percent * 10 : SLICE_US;
    gate_enter(keyspace_gate(ks), worker->index);
    ended = keyspace_defrag(ks, worker->index, allocator_move, slice_us, &sums);
    gate_leave(keyspace_gate(ks), worker->index);
    count(&sums);
    defrag->moved += sums.keys.moved;
    defrag->stayed += sums.keys.stayed;
    if (ended) {
        end_turn(defrag, service, clock_mono_ns());
    }
    return defrag->percent > 0 ? 1 + slice_us / 10 / (defrag->percent + 1)
                               : IDLE_MS;
}
