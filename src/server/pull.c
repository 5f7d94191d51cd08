/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue of pulls, their claims, and the end of each.
 */
#include "server/pull.h"
#include "server/server_state.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "journal/journal.h"
#include "keyspace/key_hash.h"
#include "replay/inject.h"
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
    pulls->up = (struct upstream){ .loop0 = &r->server->loop0,
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
pulls_hasten(struct pulls *pulls)
{
    replica_hasten(pulls->replica, replication_now_ms());
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

/* Counts a pull that ends, or a part of it. */
static void
count(const struct slot_set *slots, uint64_t keys, bool good)
{
    if (!good) {
        metric_add(METRIC_CLUSTER_TRANSFERS_FAILED, 1);
        return;
    }
    metric_add(METRIC_CLUSTER_TRANSFERS, 1);
    metric_add(METRIC_CLUSTER_TRANSFERRED_SLOTS, slot_set_count(slots));
    metric_add(METRIC_CLUSTER_TRANSFERRED_KEYS, (int64_t)keys);
}

static void
tell(const struct pull_hooks *hooks, uint64_t id, bool good, const char *reason)
{
    if (hooks->ended != NULL) {
        hooks->ended(hooks->ctx, id, good, reason);
    }
}

static void
end(struct pulls *pulls, struct pull **at, bool good, const char *reason)
{
    struct pull *pull;

    count(&(*at)->slots, pulls->keys, good);
    pull = take(pulls, at);
    log_notice("server.pull", good ? "has taken slots over" : "gave slots up",
               "id=%llu source=%s:%u slots=%u reason=\"%s\"",
               (unsigned long long)pull->id, pull->host, pull->port,
               slot_set_count(&pull->slots), reason);
    if (pull->ahead) {
        tell(&pull->hooks, pull->id, good, reason);
    }
    if (pull->claim.runs) {
        tell(&pull->claim.hooks, pull->id, good, reason);
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
    return NULL;
}

static struct pull *
make(struct pulls *pulls, const struct pull_source *source)
{
    struct pull *pull = mem_zalloc(sizeof(*pull));

    slot_drop_end(pulls->r->server, source->slots);
    pull->id = ++pulls->last_id;
    pull->slots = *source->slots;
    pull->port = source->port;
    (void)snprintf(pull->host, sizeof(pull->host), "%s", source->host);
    (void)uv_async_send(&pulls->r->poke);
    return pull;
}

uint64_t
pull_ahead(struct server *server, const struct pull_source *source,
           const struct pull_hooks *hooks, char *ret_reason, size_t reason_size)
{
    struct pulls *pulls = server->replication->pulls;
    const char *refused = refusal(pulls, source->slots);
    struct pull **last = &pulls->first;
    struct slot_set pulled;
    unsigned ahead = 0;

    pull_slots(server, &pulled);
    for (; *last != NULL; last = &(*last)->next) {
        ahead += (*last)->ahead;
    }
    if (refused == NULL && slot_set_intersects(&pulled, source->slots)) {
        refused = "some of the slots are being taken over already";
    } else if (refused == NULL && ahead >= PULLS_AHEAD_MAX) {
        refused = PULLS_AHEAD_TOO_MANY;
    }
    if (refused != NULL) {
        (void)snprintf(ret_reason, reason_size, "%s", refused);
        return 0;
    }
    *last = make(pulls, source);
    (*last)->ahead = true;
    (*last)->hooks = *hooks;
    return (*last)->id;
}

void
pull_slots(const struct server *server, struct slot_set *ret_slots)
{
    const struct pull *pull = server->replication->pulls->first;

    memset(ret_slots, 0, sizeof(*ret_slots));
    for (; pull != NULL; pull = pull->next) {
        slot_set_unite(ret_slots, &pull->slots);
    }
}

/* ---- claims -------------------------------------------------------------- */

/* Whether the pull that runs copies ahead from that server, without a claim. */
static bool
runs_ahead(const struct pulls *pulls, const char *host, unsigned port)
{
    const struct pull *pull = pulls->first;

    return pull != NULL && pulls->runs && pull->ahead && !pull->claim.runs &&
           pull->port == port && strcmp(pull->host, host) == 0;
}

bool
pull_copies(const struct server *server, const char *host, unsigned port,
            struct slot_set *slots)
{
    const struct pulls *pulls = server->replication->pulls;
    struct slot_set left = *slots;

    if (!pulls->follows || !runs_ahead(pulls, host, port)) {
        return false;
    }
    slot_set_intersect(&left, &pulls->first->slots);
    if (slot_set_is_empty(&left)) {
        return false;
    }
    *slots = left;
    return true;
}

/* The pull that runs begins anew when its turn comes again. */
static void
suspend(struct pulls *pulls)
{
    if (pulls->runs) {
        log_notice("server.pull", "lets a claim take slots over first",
                   "id=%llu", (unsigned long long)pulls->first->id);
        pull_link_end(pulls);
        pulls->runs = false;
    }
}

/* Takes slots out of a pull. Returns whether any are left. */
static bool
shrink(struct pulls *pulls, struct pull *pull, const struct slot_set *slots)
{
    bool runs = pull == pulls->first && pulls->runs;

    slot_set_subtract(&pull->slots, slots);
    if (slot_set_is_empty(&pull->slots)) {
        return false;
    }
    if (runs && pulls->follows) {
        pull_link_narrow(pulls);
    } else if (runs) {
        suspend(pulls);
    }
    return true;
}

void
pull_release(struct server *server, const struct slot_set *slots)
{
    struct pulls *pulls = server->replication->pulls;
    struct pull **at = &pulls->first;

    while (*at != NULL) {
        bool claimed = (*at)->claim.runs &&
                       slot_set_intersects(&(*at)->claim.slots, slots);

        if (slot_set_intersects(&(*at)->slots, slots) &&
            (claimed || !shrink(pulls, *at, slots))) {
            end(pulls, at, false, "its slots come in another way");
            at = &pulls->first; /* its owner may have changed the queue */
        } else {
            at = &(*at)->next;
        }
    }
    (void)uv_async_send(&pulls->r->poke);
}

/* Whether a claim goes on from the pull that runs: one that has all its slots,
 * or is still to get just these. */
static bool
goes_on(const struct pulls *pulls, const struct pull_source *source)
{
    struct slot_set left = *source->slots;

    if (!runs_ahead(pulls, source->host, source->port)) {
        return false;
    }
    slot_set_subtract(&left, &pulls->first->slots);
    return slot_set_is_empty(&left) &&
           (pulls->follows ||
            slot_set_equal(&pulls->first->slots, source->slots));
}

uint64_t
pull_begin(struct server *server, const struct pull_source *source,
           const struct pull_hooks *hooks, char *ret_reason, size_t reason_size)
{
    struct pulls *pulls = server->replication->pulls;
    const char *refused = refusal(pulls, source->slots);
    struct pull *pull = pulls->first;

    if (refused != NULL) {
        (void)snprintf(ret_reason, reason_size, "%s", refused);
        return 0;
    }
    if (!goes_on(pulls, source)) {
        pull_release(server, source->slots);
        suspend(pulls);
        pull = make(pulls, source);
        pull->next = pulls->first;
        pulls->first = pull;
    }
    pull->claim = (struct pull_claim){ .runs = true,
                                       .slots = *source->slots,
                                       .hooks = *hooks };
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
    if (!pull->claim.runs) {
        pull->claim = (struct pull_claim){ .runs = true, .slots = pull->slots };
    }
    pull->claim.fenced = true;
    pull->claim.position = position;
    (void)snprintf(pull->claim.history, sizeof(pull->claim.history), "%s",
                   history);
    (void)uv_async_send(&pulls->r->poke);
    return true;
}

/* Ends a pull without its hooks. False: there is no such pull. */
static bool
cancel(struct pulls *pulls, uint64_t id)
{
    struct pull **at = find(pulls, id);

    if (*at == NULL) {
        return false;
    }
    mem_free(take(pulls, at));
    (void)uv_async_send(&pulls->r->poke);
    return true;
}

bool
pull_abandon(struct server *server, uint64_t id, struct slot_set *ret_slots)
{
    struct pulls *pulls = server->replication->pulls;
    struct pull *pull = *find(pulls, id);

    if (pull == NULL || !pull->ahead) {
        return false;
    }
    *ret_slots = pull->slots;
    if (!pull->claim.runs || pull->claim.hooks.ended == NULL) {
        return cancel(pulls, id);
    }
    slot_set_subtract(ret_slots, &pull->claim.slots);
    pull->ahead = false;
    if (!slot_set_is_empty(ret_slots)) {
        (void)shrink(pulls, pull, ret_slots);
    }
    return true;
}

/* A copy whose claim has reached its fence does not follow these slots any
 * more. */
bool
pull_unclaim(struct server *server, uint64_t id)
{
    struct pulls *pulls = server->replication->pulls;
    struct pull *pull = *find(pulls, id);
    struct slot_set slots;

    if (pull == NULL || !pull->ahead) {
        return cancel(pulls, id);
    }
    slots = pull->claim.slots;
    pull->claim = (struct pull_claim){ .runs = false };
    if (pull == pulls->first && pulls->durable_at > 0) {
        pulls->durable_at = 0;
        if (!shrink(pulls, pull, &slots)) {
            end(pulls, &pulls->first, false, "its claim was given up");
        }
    }
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
    const struct pull_claim *claim = &pulls->first->claim;

    return claim->runs && claim->fenced && pulls->follows &&
           pulls->position >= claim->position;
}

/* The claimed slots are here. The rest of a copy goes on. */
static void
end_claim(struct pulls *pulls)
{
    struct pull *pull = pulls->first;
    struct pull_claim claim = pull->claim;

    if (!pull->ahead || slot_set_equal(&claim.slots, &pull->slots)) {
        end(pulls, &pulls->first, true, "");
        return;
    }
    log_notice("server.pull", "has taken slots of a copy over",
               "id=%llu source=%s:%u slots=%u", (unsigned long long)pull->id,
               pull->host, pull->port, slot_set_count(&claim.slots));
    count(&claim.slots, 0, true); /* the keys count with the rest */
    pull->claim = (struct pull_claim){ .runs = false };
    pulls->durable_at = 0;
    (void)shrink(pulls, pull, &claim.slots);
    tell(&claim.hooks, pull->id, true, "");
}

/* What the source's log has of these slots behind the fence is not about the
 * data that was taken over: the source deletes its copy, for example. */
static void
stop_following(struct pulls *pulls)
{
    struct journal *journal = persist_journal(pulls->r->server->persist);
    struct gate *gate = replication_gate(pulls->r);

    slot_set_subtract(&pulls->slots, &pulls->first->claim.slots);
    gate_enter(gate, 0);
    pulls->durable_at = journal_position(journal);
    gate_leave(gate, 0);
    atomic_store(&pulls->r->shared.settles, true);
    journal_kick(journal);
}

static void
settle(struct pulls *pulls)
{
    const struct journal *journal = persist_journal(pulls->r->server->persist);

    if (!has_reached_fence(pulls)) {
        return;
    }
    if (strcmp(pulls->first->claim.history, pulls->arriving.history) != 0) {
        end(pulls, &pulls->first, false,
            "the source fenced its slots in another history of its log");
        return;
    }
    if (pulls->durable_at == 0) {
        stop_following(pulls);
    }
    if (atomic_load(journal_released(journal)) >= pulls->durable_at) {
        end_claim(pulls);
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
