/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue of pulls, and the end of each.
 */
#include "server/pull.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "engine/inject.h"
#include "journal/journal.h"
#include "keyspace/key_hash.h"
#include "server/following.h"
#include "server/pull_adopt.h"
#include "server/pull_log.h"
#include "server/pull_state.h"
#include "server/slot_drop.h"

#include <stdio.h>

static void
on_link(void *ctx)
{
    struct pulls *pulls = ctx;

    /* The hooks of a pull's owner are called from loop 0's own turn. */
    (void)uv_async_send(&pulls->r->poke);
}

struct pulls *
pulls_new(struct replication *r)
{
    struct pulls *pulls = mem_zalloc(sizeof(*pulls));
    struct replica_hooks hooks = pull_link_hooks;

    hooks.ctx = pulls;
    pulls->r = r;
    pulls->replica = replica_new(r->server->service.run_id, &hooks);
    pulls->up = (struct upstream){ .server = r->server,
                                   .replica = pulls->replica,
                                   .moved = on_link,
                                   .ctx = pulls };
    return pulls;
}

void
pulls_free(struct pulls *pulls)
{
    if (pulls == NULL) {
        return;
    }
    while (pulls->first != NULL) {
        struct pull *pull = pulls->first;

        pulls->first = pull->next;
        mem_free(pull);
    }
    transfer_free(pulls->transfer);
    adoption_free(pulls->adoption);
    pull_log_free(pulls->log);
    replica_free(pulls->replica);
    inject_free(pulls->inject);
    buf_free(&pulls->text);
    mem_free(pulls);
}

void
pulls_set_options(struct pulls *pulls, const struct replica_options *options,
                  const struct upstream *like)
{
    pulls->up.keepalive_s = like->keepalive_s;
    pulls->up.uses_tls = like->uses_tls;
    replica_set_options(pulls->replica, options);
}

/* ---- the queue ----------------------------------------------------------- */

static struct pull **
find(struct pulls *pulls, uint64_t id)
{
    struct pull **at = &pulls->first;

    while (*at != NULL && (*at)->id != id) {
        at = &(*at)->next;
    }
    return at;
}

static void
begin_next(struct pulls *pulls)
{
    if (pulls->first == NULL || pulls->runs) {
        return;
    }
    pulls->runs = true;
    pulls->began_ms = replication_now_ms();
    log_notice("server.pull", "takes slots over",
               "id=%llu source=%s:%u slots=%u",
               (unsigned long long)pulls->first->id, pulls->first->host,
               pulls->first->port, slot_set_count(&pulls->first->slots));
    pull_link_begin(pulls);
}

/* Takes a pull out of the queue. */
static struct pull *
take(struct pulls *pulls, struct pull **at)
{
    struct pull *pull = *at;

    if (pull == pulls->first && pulls->runs) {
        pull_link_end(pulls);
        pulls->runs = false;
    }
    *at = pull->next;
    return pull;
}

/* Counts a pull that ends. */
static void
count(const struct pulls *pulls, const struct pull *pull, bool good)
{
    if (!good) {
        metric_add(METRIC_CLUSTER_TRANSFERS_FAILED, 1);
        return;
    }
    metric_add(METRIC_CLUSTER_TRANSFERS, 1);
    metric_add(METRIC_CLUSTER_TRANSFERRED_SLOTS, slot_set_count(&pull->slots));
    metric_add(METRIC_CLUSTER_TRANSFERRED_KEYS, (int64_t)pulls->keys);
}

static void
end(struct pulls *pulls, struct pull **at, bool good, const char *reason)
{
    struct pull *pull;

    count(pulls, *at, good);
    pull = take(pulls, at);

    log_notice("server.pull", good ? "has taken slots over" : "gave slots up",
               "id=%llu source=%s:%u slots=%u reason=\"%s\"",
               (unsigned long long)pull->id, pull->host, pull->port,
               slot_set_count(&pull->slots), reason);
    if (pull->hooks.ended != NULL) {
        pull->hooks.ended(pull->hooks.ctx, pull->id, good, reason);
    }
    mem_free(pull);
}

/* Returns why a pull cannot begin; NULL: it can. */
static const char *
refusal(const struct pulls *pulls, const struct slot_set *slots)
{
    if (!key_hash_has_slots()) {
        return "this server stands beside no node of a cluster (sidecar-of)";
    }
    if (slot_set_is_empty(slots)) {
        return "there are no slots";
    }
    if (replication_role(pulls->r).replica) {
        return "this server is a replica";
    }
    for (const struct pull *pull = pulls->first; pull != NULL;
         pull = pull->next) {
        if (slot_set_intersects(&pull->slots, slots)) {
            return "some of the slots are being taken over already";
        }
    }
    return NULL;
}

uint64_t
pull_begin(struct server *server, const struct pull_source *source,
           const struct pull_hooks *hooks, char *ret_reason, size_t reason_size)
{
    struct pulls *pulls = server->replication->pulls;
    const char *refused = refusal(pulls, source->slots);
    struct pull **last = &pulls->first;
    struct pull *pull;

    if (refused != NULL) {
        (void)snprintf(ret_reason, reason_size, "%s", refused);
        return 0;
    }
    slot_drop_end(server, source->slots);
    pull = mem_zalloc(sizeof(*pull));
    pull->id = ++pulls->last_id;
    pull->slots = *source->slots;
    pull->port = source->port;
    (void)snprintf(pull->host, sizeof(pull->host), "%s", source->host);
    if (hooks != NULL) {
        pull->hooks = *hooks;
    }
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = pull;
    (void)uv_async_send(&pulls->r->poke);
    return pull->id;
}

bool
pull_until(struct server *server, uint64_t id, const char *history,
           uint64_t position)
{
    struct pulls *pulls = server->replication->pulls;
    struct pull *pull = *find(pulls, id);

    if (pull == NULL) {
        return false;
    }
    pull->fenced = true;
    pull->fence = position;
    (void)snprintf(pull->fence_history, sizeof(pull->fence_history), "%s",
                   history);
    (void)uv_async_send(&pulls->r->poke);
    return true;
}

bool
pull_cancel(struct server *server, uint64_t id)
{
    struct pulls *pulls = server->replication->pulls;
    struct pull **at = find(pulls, id);

    if (*at == NULL) {
        return false;
    }
    mem_free(take(pulls, at));
    (void)uv_async_send(&pulls->r->poke);
    return true;
}

void
pulls_stop(struct pulls *pulls)
{
    while (pulls->first != NULL) {
        mem_free(take(pulls, &pulls->first));
    }
}

void
pulls_fail(struct pulls *pulls, const char *reason)
{
    while (pulls->first != NULL) {
        end(pulls, &pulls->first, false, reason);
    }
}

void
pulls_begin_anew(struct pulls *pulls, const char *reason)
{
    if (pulls->runs) {
        log_notice("server.pull", "takes slots over anew", "reason=\"%s\"",
                   reason);
        pull_link_end(pulls);
        pull_link_begin(pulls);
    }
}

/* ---- the cut-over -------------------------------------------------------- */

/* Whether everything up to the fence is executed here. A snapshot of a later
 * position has it all, too. */
static bool
has_reached_fence(const struct pulls *pulls)
{
    const struct pull *pull = pulls->first;

    return pull->fenced && pulls->follows && pulls->position >= pull->fence;
}

static void
settle(struct pulls *pulls)
{
    struct journal *journal = persist_journal(pulls->r->server->persist);
    struct gate *gate = replication_gate(pulls->r);

    if (!has_reached_fence(pulls)) {
        return;
    }
    if (strcmp(pulls->first->fence_history, pulls->arriving.history) != 0) {
        end(pulls, &pulls->first, false,
            "the source fenced its slots in another history of its log");
        return;
    }
    if (pulls->durable_at == 0) {
        gate_enter(gate, 0);
        pulls->durable_at = journal_position(journal);
        gate_leave(gate, 0);
        atomic_store(&pulls->r->shared.settles, true);
        journal_kick(journal);
    }
    if (atomic_load(journal_released(journal)) >= pulls->durable_at) {
        end(pulls, &pulls->first, true, "");
    }
}

/* ---- turns --------------------------------------------------------------- */

void
pulls_look(struct pulls *pulls)
{
    struct replication *r = pulls->r;

    if (pulls->first != NULL && replication_role(r).replica) {
        pulls_fail(pulls, "this server has become a replica");
    }
    if (pulls->inject == NULL) {
        pulls->inject = inject_new(r->server->workers[0]);
    }
    begin_next(pulls);
    if (pulls->runs) {
        pull_link_look(pulls);
        settle(pulls);
        begin_next(pulls);
    }
    if (!pulls->runs || pulls->durable_at == 0) {
        atomic_store(&r->shared.settles, false);
    }
    if (pulls->adoption != NULL && following_has_room(r)) {
        (void)uv_async_send(&r->poke); /* after the clients of this turn */
    }
}

void
pulls_tick(struct pulls *pulls)
{
    if (pulls->runs) {
        replica_tick(pulls->replica, replication_now_ms());
    }
    pulls_look(pulls);
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
state_of(const struct pulls *pulls)
{
    if (pulls->follows && replica_is_connected(pulls->replica)) {
        return pulls->durable_at > 0 ? PULL_SETTLES : PULL_FOLLOWS;
    }
    if (pulls->adoption != NULL) {
        return PULL_ADOPTS;
    }
    return pulls->transfer != NULL ? PULL_LOADS : PULL_CONNECTS;
}

static void
describe_first(const struct pulls *pulls, struct pull_progress *progress)
{
    struct status_figures figures = { .link = STATUS_NO_LINK };

    replica_describe(pulls->replica, &figures);
    progress->state = state_of(pulls);
    progress->age_ms = replication_now_ms() - pulls->began_ms;
    progress->keys = pulls->keys;
    progress->bytes = pulls->bytes;
    progress->attempts = pulls->attempts;
    memcpy(progress->reason, figures.reason, sizeof(progress->reason));
    if (pulls->follows) {
        memcpy(progress->history, pulls->arriving.history,
               sizeof(progress->history));
        progress->position = pulls->position;
        progress->lag_bytes = replica_unread(pulls->replica);
        progress->lag_ms = pulls->lag_ms;
    }
}

size_t
pull_list(const struct server *server, struct pull_progress *ret_list,
          size_t max)
{
    const struct pulls *pulls = server->replication->pulls;
    size_t count = 0;

    for (const struct pull *pull = pulls->first; pull != NULL;
         pull = pull->next) {
        if (count < max) {
            struct pull_progress *progress = &ret_list[count];

            *progress = (struct pull_progress){ .id = pull->id,
                                                .state = PULL_QUEUED,
                                                .slots = pull->slots,
                                                .port = pull->port };
            memcpy(progress->host, pull->host, sizeof(progress->host));
            if (count == 0 && pulls->runs) {
                describe_first(pulls, progress);
            }
        }
        count++;
    }
    return count;
}
