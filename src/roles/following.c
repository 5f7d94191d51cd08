/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes arriving groups and relays them to the log, and replaces our data by
 * arriving snapshots.
 */
#include "roles/following.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "heal/merge.h"
#include "journal/journal.h"
#include "journal/journal_tap.h"
#include "keyspace/exchange.h"
#include "keyspace/gate.h"
#include "persist/adopt.h"
#include "persist/place.h"
#include "roles/figures.h"
#include "roles/kept_role.h"
#include "roles/outgoing.h"
#include "roles/replication_state.h"

#include <stdio.h>

/* Returns whether the role is still the one for which the link was made. Inside
 * the gate. */
static bool
is_current(const struct replication *r)
{
    const struct role *role = &r->loop0->service->role;

    return role->replica && role->epoch == r->epoch;
}

/* Publishes whether the link is up. A command that changes the role clears the
 * flag. After that, the link of the older role does not count. */
static void
set_link_up(struct replication *r)
{
    atomic_bool *link_up = &r->loop0->service->link_up;
    bool before;
    bool up;

    gate_enter(replication_gate(r), 0);
    before = atomic_load(link_up);
    up = replica_is_connected(r->replica) && is_current(r);
    atomic_store(link_up, up);
    gate_leave(replication_gate(r), 0);
    if (up != before) {
        r->figures_due = true; /* figures show the link, too */
        service_wake_loops(r->loop0->service);
    }
}

/* ---- the link ------------------------------------------------------------ */

static void
on_link(void *ctx)
{
    struct replication *r = ctx;

    set_link_up(r);
    figures_settle(r);
    replication_poke_failover(r);
}

static void
dial_primary(void *ctx, uint64_t number, const char *host, unsigned port,
             uint64_t timeout_ms)
{
    struct replication *r = upstream_owner(ctx);

    r->following.told = false;
    upstream_dial(ctx, number, host, port, timeout_ms);
}

static void
close_link(void *ctx, uint64_t number)
{
    struct replication *r = upstream_owner(ctx);

    r->following.told = false;
    upstream_close(ctx, number);
}

/* ---- groups -------------------------------------------------------------- */

static void
where(void *ctx, struct replica_place *ret_place)
{
    struct replication *r = upstream_owner(ctx);
    struct persist *persist = r->loop0->service->persist;
    struct gate *gate = replication_gate(r);

    gate_enter(gate, 0);
    memcpy(ret_place->history, persist_history(persist)->id,
           sizeof(ret_place->history));
    persist_place(persist, &ret_place->position, &ret_place->sequence);
    ret_place->synced = r->loop0->service->conf->appendonly
                            ? journal_synced(persist_journal(persist))
                            : 0;
    gate_leave(gate, 0);
}

/* Applies a group and relays it, under the gate. */
static enum replica_applied
apply_and_relay(struct replication *r, const struct wire_piece *group,
                char *ret_reason, size_t reason_size)
{
    struct journal *journal = persist_journal(r->loop0->service->persist);

    if (!is_current(r)) {
        (void)snprintf(ret_reason, reason_size, "the role has changed");
        return REPLICA_LATER; /* the link will be closed */
    }
    if (!apply_clears(r->apply, group->value, group->sequence)) {
        r->following.up.put_off = true; /* clients have a turn first */
        (void)uv_async_send(&r->poke);
        return REPLICA_LATER;
    }
    if (!apply_group(r->apply, group->value, journal_position(journal),
                     ret_reason, reason_size)) {
        return REPLICA_REFUSED;
    }
    (void)journal_relay(journal, group->value, group->sequence, group->seal);
    return REPLICA_APPLIED;
}

/* Gives our data a new history. Only a part of a group was executed, so our
 * data is no state of the primary's log, and must not be taken for one. We keep
 * it, since it may be all that is left if the primary is lost. */
static void
disown(struct replication *r)
{
    struct persist *persist = r->loop0->service->persist;
    struct persist_arrival arrival = { .fresh = NULL };
    struct gate *gate = replication_gate(r);

    primary_drop_all(r->primary, "a group does not fit our data");
    gate_raise(gate, 0); /* whether or not the role has changed */
    persist_place(persist, &arrival.position, &arrival.sequence);
    arrival.position++;
    r->following.adopting = true; /* the refusal ends the link anyway */
    persist_adopt(persist, &arrival);
    r->following.adopting = false;
    primary_set_history(r->primary, persist_history(persist), r->key);
    gate_lower(gate, 0);
}

static enum replica_applied
apply(void *ctx, const struct wire_piece *group, char *ret_reason,
      size_t reason_size)
{
    struct replication *r = upstream_owner(ctx);
    struct gate *gate = replication_gate(r);
    bool world = apply_needs_world(r->apply, group->value);
    enum replica_applied applied =
        upstream_takes(&r->following.up, group, ret_reason, reason_size);

    if (applied != REPLICA_APPLIED) {
        return applied;
    }
    if (world) {
        gate_raise(gate, 0);
    } else {
        gate_enter(gate, 0);
    }
    applied = apply_and_relay(r, group, ret_reason, reason_size);
    if (world) {
        gate_lower(gate, 0);
    } else {
        gate_leave(gate, 0);
    }
    apply_wake(r->apply);
    if (applied == REPLICA_APPLIED) {
        journal_kick(persist_journal(r->loop0->service->persist));
        outgoing_poke(r);
    } else if (applied == REPLICA_REFUSED) {
        disown(r);
    }
    return applied;
}

static void
take_key(void *ctx, uint64_t key)
{
    struct replication *r = upstream_owner(ctx);
    struct gate *gate = replication_gate(r);
    uint64_t position;
    uint64_t sequence;

    r->following.released_above = true;
    r->following.synced_once = true;
    if (key == r->key) {
        return;
    }
    /* The backlog has seals of the old key. */
    r->key = key;
    primary_drop_all(r->primary, "the key of the stream has changed");
    gate_raise(gate, 0);
    persist_place(r->loop0->service->persist, &position, &sequence);
    backlog_begin(r->backlog, position);
    primary_set_history(r->primary, persist_history(r->loop0->service->persist),
                        key);
    gate_lower(gate, 0);
    kept_role_update(r);
}

static bool
take_holdings(void *ctx, struct slice text)
{
    struct replication *r = upstream_owner(ctx);

    if (r->following.take_holdings == NULL) {
        return false;
    }
    r->following.told = true;
    return r->following.take_holdings(r->following.holdings_ctx, text);
}

/* Handles that the chain of servers above us has changed. Drops our replicas:
 * each learns the chain when it connects again. */
static void
chained(void *ctx)
{
    struct replication *r = upstream_owner(ctx);

    primary_drop_all(r->primary, "the primary above has changed");
    figures_keep_chain(r);
}

/* ---- snapshots ----------------------------------------------------------- */

/* Drops our data, which is freed in the background. Until the new data is in
 * place, commands on keys are refused and nothing is saved. False: no memory.
 */
static bool
drop_data(struct replication *r)
{
    struct service *service = r->loop0->service;
    struct keyspace_options options = upstream_keyspace(&r->following.up);
    struct keyspace *empty = keyspace_try_new(&options);

    if (empty == NULL) {
        return false;
    }
    persist_suspend(r->loop0->service->persist);
    gate_raise(replication_gate(r), 0);
    atomic_store(&service->absent, true);
    r->following.synced_once = false;
    keyspace_exchange(service->keyspace, empty);
    gate_lower(replication_gate(r), 0);
    keyspace_discard(service->keyspace, empty);
    replica_distrust(r->replica);
    return true;
}

/* Returns whether the machine has memory for the new data without our old data.
 * maxmemory does not count: a replica must store what its primary stores. */
static bool
could_fit(const struct replication *r, uint64_t bytes)
{
    uint64_t machine = machine_memory_bytes();
    uint64_t started = r->loop0->service->started_bytes;

    return started <= machine && bytes <= machine - started;
}

/* Frees the old data if it does not fit beside the new. False: no memory. */
static bool
make_memory_room(struct replication *r, uint64_t bytes)
{
    uint64_t max = r->loop0->service->memory.maxmemory_bytes;
    uint64_t machine = machine_memory_bytes();
    uint64_t limit = max > 0 && max < machine ? max : machine;
    uint64_t used = mem_used();

    if (used <= limit && bytes <= limit - used) {
        return true;
    }
    if (r->following.up.secrets_lacking > 0) {
        log_warn("server.replication",
                 "keeps the data, although there is no memory for both",
                 "reason=\"the new data may need hash secrets that are not "
                 "here\" missing=%u",
                 r->following.up.secrets_lacking);
        return false;
    }
    log_warn("server.replication",
             "dropped the data before the new data arrives",
             "reason=\"no memory for both\" used=%llu coming=%llu limit=%llu",
             (unsigned long long)used, (unsigned long long)bytes,
             (unsigned long long)limit);
    return drop_data(r);
}

static void
drop_transfer(struct replication *r)
{
    persist_refuse(r->loop0->service->persist);
    upstream_drop(&r->following.up);
}

/* Starts the thread that loads the arriving snapshot. Returns false, with a
 * reason, if that is impossible. */
static bool
begin_transfer(struct replication *r, char *ret_reason, size_t reason_size)
{
    struct upstream *up = &r->following.up;
    struct persist *persist = r->loop0->service->persist;
    struct transfer_copy copy;

    drop_transfer(r);
    if (!make_memory_room(r, up->arriving.bytes)) {
        (void)snprintf(ret_reason, reason_size,
                       "there is no memory or no thread to load it");
        return false;
    }
    copy = persist_receive(persist);
    if (!upstream_load(up, NULL, &copy, ret_reason, reason_size)) {
        persist_refuse(persist);
        return false;
    }
    return true;
}

/* Begins to load a snapshot. Our data stays until the part of it that the
 * primary lacks is saved (heal/merge.h). Until then the link is paused, and the
 * bytes of the snapshot that have arrived are held. */
static bool
load_begin(void *ctx, const struct wire_answer *answer, char *ret_reason,
           size_t reason_size)
{
    struct replication *r = upstream_owner(ctx);

    if (r->following.may_load != NULL &&
        !r->following.may_load(r->following.holdings_ctx, answer->history)) {
        (void)snprintf(ret_reason, reason_size,
                       "the servers of the slots' owners do not have what is "
                       "here; it stays until then, or until SIDECAR LET-GO");
        return false;
    }
    if (!could_fit(r, answer->bytes)) {
        (void)snprintf(ret_reason, reason_size,
                       "it has %llu bytes, more than this machine or cgroup "
                       "can hold; the data here stays",
                       (unsigned long long)answer->bytes);
        return false;
    }
    r->following.up.arriving = *answer;
    r->following.up.complete = false;
    r->following.holds = merge_begin(r->merge, answer);
    return r->following.holds || begin_transfer(r, ret_reason, reason_size);
}

static bool
load_bytes(void *ctx, struct slice bytes)
{
    struct replication *r = upstream_owner(ctx);

    if (r->following.holds) {
        buf_append_slice(&r->following.held, bytes);
        r->following.up.put_off = true;
        return false;
    }
    return upstream_load_bytes(ctx, bytes);
}

static void
load_end(void *ctx)
{
    struct replication *r = upstream_owner(ctx);

    if (r->following.holds) {
        r->following.up.complete = true;
    } else {
        upstream_load_end(ctx);
    }
}

static void
forget_load(struct replication *r)
{
    drop_transfer(r);
    r->following.holds = r->following.stores = false;
    buf_free(&r->following.held);
}

static void
load_cancel(void *ctx)
{
    forget_load(upstream_owner(ctx));
}

/* Loads the held bytes of the snapshot, and then those that follow. */
static void
release_load(struct replication *r)
{
    char reason[STATUS_TEXT_MAX] = "there is no memory for what has come of it";

    r->following.holds = false;
    if (r->following.held.failed ||
        !begin_transfer(r, reason, sizeof(reason))) {
        forget_load(r);
        replica_loaded(r->replica, false, reason, replication_now_ms());
        return;
    }
    (void)transfer_put(r->following.up.transfer, buf_slice(&r->following.held));
    buf_free(&r->following.held);
    if (r->following.up.complete) {
        transfer_finish(r->following.up.transfer);
    }
}

/* Replaces our data by the new data. False: the role has changed. */
static bool
adopt(struct replication *r, struct keyspace *fresh,
      const struct snapshot_stamp *stamp)
{
    struct persist_arrival arrival = { .fresh = fresh,
                                       .history =
                                           r->following.up.arriving.history,
                                       .position = stamp->position,
                                       .sequence = stamp->sequence,
                                       .received = true };
    struct gate *gate = replication_gate(r);
    bool current;

    primary_drop_all(r->primary, "all data was replaced");
    figures_settle(r); /* the published positions are of the old log */
    gate_raise(gate, 0);
    current = is_current(r);
    if (current) {
        r->following.adopting = true;
        persist_adopt(r->loop0->service->persist, &arrival);
        r->following.adopting = false;
        primary_set_history(
            r->primary, persist_history(r->loop0->service->persist), r->key);
        atomic_store(&r->loop0->service->absent, false);
    }
    gate_lower(gate, 0);
    return current;
}

static bool
is_as_announced(const struct replication *r, const struct snapshot_stamp *stamp)
{
    return strcmp(stamp->history, r->following.up.arriving.history) == 0 &&
           stamp->position >= r->following.up.arriving.position &&
           stamp->sequence >= r->following.up.arriving.sequence;
}

static void
end_load(struct replication *r)
{
    struct snapshot_stamp stamp;
    struct keyspace *fresh = upstream_take(&r->following.up, &stamp);
    bool good = is_as_announced(r, &stamp);
    const char *reason = "the snapshot is not the one that was announced";

    if (good) {
        good = adopt(r, fresh, &stamp);
        reason = "the role has changed";
    }
    keyspace_discard(r->loop0->service->keyspace, fresh);
    if (!good) {
        persist_refuse(r->loop0->service->persist);
        replica_loaded(r->replica, false, reason, replication_now_ms());
        return;
    }
    log_notice(
        "server.replication", "synchronized",
        "history=%s position=%llu keys=%llu", r->following.up.arriving.history,
        (unsigned long long)stamp.position, (unsigned long long)stamp.keys);
    r->following.stores = true;
}

/* Declares the link up once the new data is on the disk, or could not be
 * written there. */
static void
end_store(struct replication *r)
{
    if (persist_has_adopted(r->loop0->service->persist)) {
        r->following.stores = false;
        replica_loaded(r->replica, true, "", replication_now_ms());
    }
}

static void
look_at_transfer(struct replication *r)
{
    char reason[STATUS_TEXT_MAX];

    switch (upstream_poll(&r->following.up, reason, sizeof(reason))) {
    case TRANSFER_RUNS:
        break;
    case TRANSFER_LOADED:
        if (persist_has_received(r->loop0->service->persist)) {
            end_load(r);
        }
        break;
    case TRANSFER_FAILED:
        drop_transfer(r);
        replica_loaded(r->replica, false, reason, replication_now_ms());
        break;
    }
}

void
following_kill(struct replication *r, const char *reason)
{
    upstream_kill(&r->following.up, reason);
}

void
following_look(struct replication *r)
{
    if (r->following.holds && !merge_needs_data(r->merge)) {
        release_load(r);
    }
    if (r->following.up.transfer != NULL) {
        look_at_transfer(r);
    }
    if (r->following.stores) {
        end_store(r);
    }
    if (!r->following.holds) {
        upstream_look(&r->following.up);
    }
    set_link_up(r);
}

/* ---- begin and end ------------------------------------------------------- */

static void
on_transfer_poke(void *ctx)
{
    struct replication *r = ctx;

    (void)uv_async_send(&r->poke);
}

static const struct replica_hooks following_hooks = { .dial = dial_primary,
                                                      .send = upstream_send,
                                                      .close = close_link,
                                                      .pause = upstream_pause,
                                                      .where = where,
                                                      .apply = apply,
                                                      .holdings = take_holdings,
                                                      .load_begin = load_begin,
                                                      .load_bytes = load_bytes,
                                                      .load_end = load_end,
                                                      .load_cancel =
                                                          load_cancel,
                                                      .key = take_key,
                                                      .chained = chained,
                                                      .wants = upstream_wants,
                                                      .learn = upstream_learn };

struct replica *
following_init(struct replication *r)
{
    struct replica_hooks hooks = following_hooks;

    hooks.ctx = &r->following.up;
    r->following.up = (struct upstream){
        .loop0 = r->loop0,
        .replica = replica_new(r->loop0->service->run_id, &hooks),
        .moved = on_link,
        .poke = on_transfer_poke,
        .ctx = r,
    };
    return r->following.up.replica;
}

void
following_begin(struct replication *r, const struct role *role, bool failover)
{
    struct replica_target target = { .host = role->host,
                                     .port = role->port,
                                     .failover = failover };

    r->epoch = role->epoch;
    r->following.released_above = false;
    r->following.up.put_off = false;
    outgoing_open(r);
    log_notice("server.replication", "follows a primary", "host=%s port=%u",
               target.host, target.port);
    replica_follow(r->replica, &target, replication_now_ms());
    set_link_up(r);
}

void
following_end(struct replication *r)
{
    replica_stop(r->replica);
    forget_load(r);
    r->following.up.put_off = false;
    r->following.released_above = false;
    r->following.synced_once = false;
    set_link_up(r);
}
