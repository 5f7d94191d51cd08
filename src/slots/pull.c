/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The beginning of a pull, its end, and its counts.
 */
#include "slots/pull.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/run_clock.h"
#include "engine/role.h"
#include "engine/service.h"
#include "journal/journal.h"
#include "keyspace/gate.h"
#include "keyspace/key_hash.h"
#include "persist/persist.h"
#include "replay/inject.h"
#include "slots/pull_adopt.h"
#include "slots/pull_log.h"
#include "slots/pull_state.h"
#include "slots/slot_drop.h"

#include <stdio.h>

static void
on_link(void *ctx)
{
    struct pull *pull = ctx;

    /* The owner's hook is called later, in a turn of loop 0. */
    pull->roles.poke(pull->roles.ctx);
}

struct pull *
pull_new(const struct pull_roles *roles)
{
    struct pull *pull = mem_zalloc(sizeof(*pull));
    struct replica_hooks hooks = pull_link_hooks;

    hooks.ctx = &pull->up;
    pull->roles = *roles;
    pull->replica = replica_new(roles->loop0->service->run_id, &hooks);
    pull->up = (struct upstream){ .loop0 = roles->loop0,
                                  .replica = pull->replica,
                                  .moved = on_link,
                                  .poke = on_link,
                                  .ctx = pull };
    return pull;
}

void
pull_free(struct pull *pull)
{
    if (pull == NULL) {
        return;
    }
    upstream_drop(&pull->up);
    adoption_free(pull->adoption);
    pull_log_free(pull->log);
    replica_free(pull->replica);
    inject_free(pull->inject);
    buf_free(&pull->text);
    mem_free(pull);
}

void
pull_hurry(struct pull *pull)
{
    replica_hasten(pull->replica, run_clock_ms());
}

void
pull_set_options(struct pull *pull, const struct replica_options *options,
                 const struct upstream *like)
{
    pull->up.keepalive_s = like->keepalive_s;
    pull->up.uses_tls = like->uses_tls;
    replica_set_options(pull->replica, options);
}

/* ---- begin and end ------------------------------------------------------- */

/* Returns why a pull cannot begin; NULL: it can. */
static const char *
refusal(const struct pull *pull)
{
    if (!key_hash_has_slots()) {
        return "this server stands beside no node of a cluster (sidecar-of)";
    }
    if (role_copy(pull->roles.loop0->service).replica) {
        return "this server is a replica";
    }
    return NULL;
}

bool
pull_begin(struct pull *pull, const struct pull_source *source,
           const struct pull_hooks *hooks, char *ret_reason, size_t reason_size)
{
    const char *refused = refusal(pull);

    CHECK(!slot_set_is_empty(source->slots));
    if (refused != NULL) {
        (void)snprintf(ret_reason, reason_size, "%s", refused);
        return false;
    }
    pull_stop(pull);
    slot_drop_end(pull->roles.drop, source->slots);
    pull->wanted = true;
    pull->fenced = false;
    pull->id++;
    pull->claimed = *source->slots;
    pull->port = source->port;
    (void)snprintf(pull->host, sizeof(pull->host), "%s", source->host);
    pull->hooks = *hooks;
    pull->roles.poke(pull->roles.ctx);
    return true;
}

static void
begin_pull(struct pull *pull)
{
    pull->runs = true;
    pull->began_ms = run_clock_ms();
    log_notice("server.pull", "takes slots over",
               "id=%llu source=%s:%u slots=%u", (unsigned long long)pull->id,
               pull->host, pull->port, slot_set_count(&pull->claimed));
    pull_link_begin(pull);
}

void
pull_stop(struct pull *pull)
{
    if (pull->runs) {
        pull_link_end(pull);
    }
    pull->wanted = pull->runs = false;
}

void
pull_cancel(struct pull *pull)
{
    if (pull->wanted) {
        pull_stop(pull);
        pull->roles.poke(pull->roles.ctx);
    }
}

/* Counts a pull that ends. */
static void
count(struct pull *pull, bool good, const char *reason)
{
    struct pull_counts *counts = &pull->counts;

    if (!good) {
        counts->failed++;
        (void)snprintf(counts->why, sizeof(counts->why), "%s", reason);
        metric_add(METRIC_CLUSTER_TRANSFERS_FAILED, 1);
        return;
    }
    counts->done++;
    counts->cutover_us = (clock_mono_ns() - pull->fenced_ns) / 1000;
    metric_add(METRIC_CLUSTER_TRANSFERS, 1);
    metric_add(METRIC_CLUSTER_TRANSFERRED_SLOTS,
               slot_set_count(&pull->claimed));
    metric_add(METRIC_CLUSTER_TRANSFERRED_KEYS, (int64_t)pull->keys);
}

static void
end_pull(struct pull *pull, bool good, const char *reason)
{
    count(pull, good, reason);
    pull_stop(pull);
    log_notice("server.pull", good ? "has taken slots over" : "gave slots up",
               "id=%llu source=%s:%u slots=%u reason=\"%s\"",
               (unsigned long long)pull->id, pull->host, pull->port,
               slot_set_count(&pull->claimed), reason);
    pull->hooks.ended(pull->hooks.ctx, good, reason);
}

void
pull_begin_anew(struct pull *pull, const char *reason)
{
    if (pull->runs) {
        log_notice("server.pull", "takes slots over anew", "reason=\"%s\"",
                   reason);
        pull_link_end(pull);
        pull_link_begin(pull);
    }
}

/* ---- the cut-over -------------------------------------------------------- */

void
pull_until(struct pull *pull, const char *history, uint64_t position)
{
    if (!pull->wanted) {
        return;
    }
    pull->fenced = true;
    pull->fenced_ns = clock_mono_ns();
    pull->until = position;
    (void)snprintf(pull->history, sizeof(pull->history), "%s", history);
    pull->roles.poke(pull->roles.ctx);
}

/* Returns whether everything up to the fence is executed here, or is in a
 * snapshot of a later position. */
static bool
has_reached_fence(const struct pull *pull)
{
    return pull->fenced && pull->follows && pull->position >= pull->until;
}

/* Stops reading the source's log. Commands after the fence are not about the
 * data that was taken over: the source deletes its own copy, for example. */
static void
stop_following(struct pull *pull)
{
    struct journal *journal =
        persist_journal(pull->roles.loop0->service->persist);
    struct gate *gate = keyspace_gate(pull->roles.loop0->service->keyspace);

    pull->slots = (struct slot_set){ { 0 } };
    gate_enter(gate, 0);
    pull->durable_at = journal_position(journal);
    gate_leave(gate, 0);
    atomic_store(pull->roles.settles, true);
    journal_kick(journal);
}

static void
settle_pull(struct pull *pull)
{
    const struct journal *journal =
        persist_journal(pull->roles.loop0->service->persist);

    if (!has_reached_fence(pull)) {
        return;
    }
    if (strcmp(pull->history, pull->up.arriving.history) != 0) {
        end_pull(pull, false,
                 "the source fenced its slots in another history of its log");
        return;
    }
    if (pull->durable_at == 0) {
        stop_following(pull);
    }
    if (atomic_load(journal_released(journal)) >= pull->durable_at) {
        end_pull(pull, true, "");
    }
}

/* ---- turns --------------------------------------------------------------- */

void
pull_look(struct pull *pull)
{
    if (pull->wanted && role_copy(pull->roles.loop0->service).replica) {
        end_pull(pull, false, "this server has become a replica");
    }
    if (pull->inject == NULL) {
        pull->inject = inject_new(pull->roles.loop0->worker);
    }
    if (pull->wanted && !pull->runs) {
        begin_pull(pull);
    }
    if (pull->runs) {
        pull_link_look(pull);
        settle_pull(pull);
    }
    if (!pull->runs || pull->durable_at == 0) {
        atomic_store(pull->roles.settles, false);
    }
    if (pull->adoption != NULL &&
        service_takes_logs(pull->roles.loop0->service)) {
        /* Continue after this turn's clients. */
        pull->roles.poke(pull->roles.ctx);
    }
}

void
pull_tick(struct pull *pull)
{
    if (pull->runs) {
        replica_tick(pull->replica, run_clock_ms());
    }
}

/* ---- figures ------------------------------------------------------------- */

const char *
pull_state_name(enum pull_state state)
{
    static const char *const names[] = { "queued", "connects", "loads",
                                         "adopts", "follows",  "settles" };

    return names[state];
}

static enum pull_state
state_of(const struct pull *pull)
{
    if (!pull->runs) {
        return PULL_QUEUED;
    }
    if (pull->follows && replica_is_connected(pull->replica)) {
        return pull->durable_at > 0 ? PULL_SETTLES : PULL_FOLLOWS;
    }
    if (pull->adoption != NULL) {
        return PULL_ADOPTS;
    }
    return pull->up.transfer != NULL ? PULL_LOADS : PULL_CONNECTS;
}

static void
show_link(const struct pull *pull, struct pull_progress *progress)
{
    struct status_figures figures = { .link = STATUS_NO_LINK };

    replica_describe(pull->replica, &figures);
    progress->age_ms = run_clock_ms() - pull->began_ms;
    progress->keys = pull->keys;
    progress->bytes = pull->bytes;
    progress->attempts = pull->attempts;
    progress->cut = replica_is_cut(pull->replica);
    memcpy(progress->reason, figures.reason, sizeof(progress->reason));
    if (pull->follows) {
        progress->position = pull->position;
        progress->lag_bytes = replica_unread(pull->replica);
        progress->lag_ms = pull->lag_ms;
    }
}

bool
pull_show(const struct pull *pull, struct pull_progress *ret_progress)
{
    if (!pull->wanted) {
        return false;
    }
    *ret_progress = (struct pull_progress){ .state = state_of(pull),
                                            .slots = pull->claimed,
                                            .port = pull->port };
    memcpy(ret_progress->host, pull->host, sizeof(ret_progress->host));
    if (pull->runs) {
        show_link(pull, ret_progress);
    }
    return true;
}

void
pull_slots(const struct pull *pull, struct slot_set *ret_slots)
{
    *ret_slots = pull->wanted ? pull->claimed : (struct slot_set){ { 0 } };
}

const struct pull_counts *
pull_counted(const struct pull *pull)
{
    return &pull->counts;
}
