/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys are evicted one at a time. A background thread frees the memory of large
 * filters later; memory on its way to that thread counts as free, so that no
 * key is evicted needlessly.
 */
#include "engine/room.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/effect.h"
#include "engine/expiry.h"
#include "engine/observe.h"
#include "engine/refusal.h"
#include "keyspace/evict.h"

enum { KEYS_MAX = 1024, BUDGET_NS = 500 * 1000 };

static enum evict_by
by_of(int policy)
{
    switch (policy & ~(CONF_POLICY_ALLKEYS | CONF_POLICY_VOLATILE)) {
    case CONF_POLICY_LFU:
        return EVICT_RAREST;
    case CONF_POLICY_RANDOM:
        return EVICT_ANY;
    case CONF_POLICY_TTL:
        return EVICT_SOONEST;
    default:
        return EVICT_OLDEST;
    }
}

/* Evicts a key. The caller holds the lock of its stripe, and has reserved space
 * for the effect. The notices follow the effect and need the key's name, so the
 * entry is removed last. */
static void
evict(struct worker *worker, const struct key *key, struct entry *entry,
      bool expired)
{
    effect_delete(worker, key);
    effect_close_stripe(worker, keyspace_stripe_of(key->hash));
    if (expired) {
        observe_removed_alone(worker, key, CONF_EVENT_EXPIRED, "expired");
    } else {
        observe_removed_alone(worker, key, CONF_EVENT_EVICTED, "evicted");
    }
    keyspace_remove(worker->service->keyspace, key, entry);
    metric_add(expired ? METRIC_EXPIRED_KEYS : METRIC_EVICTED_KEYS, 1);
}

static enum err
evict_one(struct worker *worker, const struct evict_plan *plan)
{
    struct keyspace *ks = worker->service->keyspace;
    struct evict_candidate candidate;
    struct slice name = { NULL, 0 };
    struct entry *entry;
    bool expired;
    struct key key;
    enum err err;

    if (!evict_choose(ks, worker->index, plan, &candidate)) {
        return ERR_OOM;
    }
    name.len = candidate.name_len;
    err = effect_open(worker, effect_delete_bytes(name));
    if (err != OK) {
        return err;
    }
    keyspace_lock(ks, worker->index, candidate.stripe, true);
    entry = evict_find(ks, plan, &candidate, &key, &expired);
    if (entry != NULL) {
        evict(worker, &key, entry, expired);
    }
    keyspace_unlock(ks, worker->index, candidate.stripe);
    return OK;
}

/* Nothing is evicted while the loader owns the keyspace, on a replica, during a
 * pause, or while writes are refused. Clients then wait, or get the error with
 * which writes are refused; they do not get ERR_OOM. */
static bool
must_wait(const struct service *service)
{
    return !expiry_may_remove(service) || refusal_is_loading(service) ||
           (service->memory.evicts && refusal_of_writes(service) != OK);
}

enum err
room_make(struct worker *worker)
{
    struct service *service = worker->service;
    int policy = service->conf->maxmemory_policy;
    const struct evict_plan plan = {
        .by = by_of(policy),
        .volatile_only = (policy & CONF_POLICY_VOLATILE) != 0,
        .samples = (unsigned)service->conf->maxmemory_samples,
        .now_ms = worker->now_ms,
    };
    uint64_t end_ns = clock_mono_ns() + BUDGET_NS;
    enum err err = service->memory.evicts ? OK : ERR_OOM;

    if (must_wait(service)) {
        return OK;
    }
    for (unsigned i = 0; err == OK && i < KEYS_MAX; i++) {
        if (!keyspace_is_over(service->memory.maxmemory_bytes)) {
            break;
        }
        err = evict_one(worker, &plan);
        if (clock_mono_ns() >= end_ns) {
            break;
        }
    }
    return err;
}
