/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Groups on their way into the data and the log, and snapshots on their way
 * into the place of our data.
 */
#include "roles/following.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "dial/secrets.h"
#include "heal/merge.h"
#include "journal/journal.h"
#include "journal/journal_tap.h"
#include "keyspace/exchange.h"
#include "keyspace/gate.h"
#include "persist/adopt.h"
#include "persist/place.h"
#include "replay/complete.h"
#include "roles/figures.h"
#include "roles/kept_role.h"
#include "roles/outgoing.h"
#include "roles/replication_state.h"

#include <stdio.h>

enum { TRANSFER_QUEUE_BYTES = 8 << 20 };

/* Whether the role is still the one that the link was made for. Inside the
 * gate. */
static bool
is_current(const struct replication *r)
{
    const struct role *role = &r->loop0->service->role;

    return role->replica && role->epoch == r->epoch;
}

/* Publishes whether the link is up. A command that changes the role clears
 * this; the link of an older role does not count then. */
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
        r->figures_due = true; /* before a command sees the change */
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
    struct replication *r = ctx;

    r->following.secrets_lacking = 0;
    r->following.told = false;
    upstream_dial(&r->following.up, number, host, port, timeout_ms);
}

static bool
send_bytes(void *ctx, uint64_t number, struct slice bytes)
{
    struct replication *r = ctx;

    return upstream_send(&r->following.up, number, bytes);
}

static void
close_link(void *ctx, uint64_t number)
{
    struct replication *r = ctx;

    r->following.told = false;
    upstream_close(&r->following.up, number);
}

static void
pause_link(void *ctx, uint64_t number, bool paused)
{
    struct replication *r = ctx;

    upstream_pause(&r->following.up, number, paused);
}

/* ---- groups -------------------------------------------------------------- */

static void
where(void *ctx, struct replica_place *ret_place)
{
    struct replication *r = ctx;
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

/* Under the gate. */
static enum replica_applied
apply_and_relay(struct replication *r, const struct wire_piece *group,
                char *ret_reason, size_t reason_size)
{
    struct journal *journal = persist_journal(r->loop0->service->persist);

    if (!is_current(r)) {
        (void)snprintf(ret_reason, reason_size, "the role has changed");
        return REPLICA_LATER; /* the link is closed next */
    }
    if (!apply_group(r->apply, group->value, journal_position(journal),
                     ret_reason, reason_size)) {
        return REPLICA_REFUSED;
    }
    (void)journal_relay(journal, group->value, group->sequence, group->seal);
    return REPLICA_APPLIED;
}

/* Keeps our data under a new history. A part of a group was executed, so our
 * data is no state of the primary's log, and must not be taken for one. It
 * stays, since it may be all that is left if the primary is lost. */
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
    r->following.adopting = true; /* the link ends with the refusal */
    persist_adopt(persist, &arrival);
    r->following.adopting = false;
    primary_set_history(r->primary, persist_history(persist), r->key);
    gate_lower(gate, 0);
}

static enum replica_applied
apply(void *ctx, const struct wire_piece *group, char *ret_reason,
      size_t reason_size)
{
    struct replication *r = ctx;
    struct gate *gate = replication_gate(r);
    bool world = apply_needs_world(r->apply, group->value);
    enum replica_applied applied;

    if (secrets_are_missing(group->value, ret_reason, reason_size)) {
        return REPLICA_RENEW;
    }
    if (!service_takes_logs(r->loop0->service)) {
        r->following.waits_for_room = true;
        return REPLICA_LATER;
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
    struct replication *r = ctx;
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

/* Drops our replicas: each learns the chain of servers above when it connects.
 */
static bool
take_holdings(void *ctx, struct slice text)
{
    struct replication *r = ctx;

    if (r->following.take_holdings == NULL) {
        return false;
    }
    r->following.told = true;
    return r->following.take_holdings(r->following.holdings_ctx, text);
}

static void
chained(void *ctx)
{
    struct replication *r = ctx;

    primary_drop_all(r->primary, "the primary above has changed");
    figures_keep_chain(r);
}

/* ---- snapshots ----------------------------------------------------------- */

/* Frees our data in the background. Until the new data is in place, commands on
 * keys are refused and nothing is saved. False: no memory. */
static bool
drop_data(struct replication *r, const struct keyspace_options *options)
{
    struct service *service = r->loop0->service;
    struct keyspace *empty = keyspace_try_new(options);

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

/* Whether the machine could hold the new data without our old data. maxmemory
 * does not count: a replica has to hold what its primary holds. */
static bool
could_fit(const struct replication *r, uint64_t bytes)
{
    uint64_t machine = machine_memory_bytes();
    uint64_t started = r->loop0->service->started_bytes;

    return started <= machine && bytes <= machine - started;
}

/* Frees the old data if it does not fit beside the new. False: no memory. */
static bool
make_memory_room(struct replication *r, uint64_t bytes,
                 const struct keyspace_options *options)
{
    uint64_t max = r->loop0->service->memory.maxmemory_bytes;
    uint64_t machine = machine_memory_bytes();
    uint64_t limit = max > 0 && max < machine ? max : machine;
    uint64_t used = mem_used();

    if (used <= limit && bytes <= limit - used) {
        return true;
    }
    if (r->following.secrets_lacking > 0) {
        log_warn("server.replication",
                 "keeps the data, although there is no memory for both",
                 "reason=\"the new data may need hash secrets that are not "
                 "here\" missing=%u",
                 r->following.secrets_lacking);
        return false;
    }
    log_warn("server.replication",
             "dropped the data before the new data arrives",
             "reason=\"no memory for both\" used=%llu coming=%llu limit=%llu",
             (unsigned long long)used, (unsigned long long)bytes,
             (unsigned long long)limit);
    return drop_data(r, options);
}

static void
on_transfer_poke(void *ctx)
{
    struct replication *r = ctx;

    (void)uv_async_send(&r->poke);
}

static void
drop_transfer(struct replication *r)
{
    persist_refuse(r->loop0->service->persist);
    transfer_free(r->following.transfer);
    r->following.transfer = NULL;
}

/* Starts the thread that loads what arrives. False: it cannot be loaded. */
static bool
begin_transfer(struct replication *r, char *ret_reason, size_t reason_size)
{
    const struct wire_answer *answer = &r->following.arriving;
    struct service *service = r->loop0->service;
    struct transfer_options options = {
        .keyspace = { .threads = service->threads,
                      .databases = (unsigned)service->conf->databases },
        .present = service->keyspace,
        .env = &service->obey_env,
        .completion = &complete_calls,
        .queue_bytes = TRANSFER_QUEUE_BYTES,
        .poke = on_transfer_poke,
        .ctx = r
    };

    drop_transfer(r);
    if (make_memory_room(r, answer->bytes, &options.keyspace)) {
        options.copy = persist_receive(service->persist);
        r->following.transfer = transfer_new(&options);
    }
    if (r->following.transfer == NULL) {
        persist_refuse(service->persist);
        (void)snprintf(ret_reason, reason_size,
                       "there is no memory or no thread to load it");
        return false;
    }
    return true;
}

/* The data stays until its part that the primary lacks is saved (merge.h).
 * Until then the link is paused, and what has come of the snapshot is held. */
static bool
load_begin(void *ctx, const struct wire_answer *answer, char *ret_reason,
           size_t reason_size)
{
    struct replication *r = ctx;

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
    r->following.arriving = *answer;
    r->following.complete = false;
    r->following.holds = merge_begin(r->merge, answer);
    return r->following.holds || begin_transfer(r, ret_reason, reason_size);
}

static bool
load_bytes(void *ctx, struct slice bytes)
{
    struct replication *r = ctx;

    if (r->following.holds) {
        buf_append_slice(&r->following.held, bytes);
        r->following.waits_for_room = true;
        return false;
    }
    CHECK(r->following.transfer != NULL && !r->following.complete);
    if (transfer_put(r->following.transfer, bytes)) {
        return true;
    }
    r->following.waits_for_room = true;
    return false;
}

static void
load_end(void *ctx)
{
    struct replication *r = ctx;

    r->following.complete = true;
    if (!r->following.holds) {
        transfer_finish(r->following.transfer);
    }
}

static void
load_cancel(void *ctx)
{
    struct replication *r = ctx;

    drop_transfer(r);
    r->following.holds = r->following.stores = false;
    buf_free(&r->following.held);
}

/* Loads what was held, and what follows. */
static void
release_load(struct replication *r)
{
    char reason[STATUS_TEXT_MAX] = "there is no memory for what has come of it";

    r->following.holds = false;
    if (r->following.held.failed ||
        !begin_transfer(r, reason, sizeof(reason))) {
        load_cancel(r);
        replica_loaded(r->replica, false, reason, replication_now_ms());
        return;
    }
    (void)transfer_put(r->following.transfer, buf_slice(&r->following.held));
    buf_free(&r->following.held);
    if (r->following.complete) {
        transfer_finish(r->following.transfer);
    }
}

/* Puts the new data in the place of the old. False: the role has changed. */
static bool
adopt(struct replication *r, struct keyspace *fresh,
      const struct snapshot_stamp *stamp)
{
    struct persist_arrival arrival = { .fresh = fresh,
                                       .history = r->following.arriving.history,
                                       .position = stamp->position,
                                       .sequence = stamp->sequence,
                                       .received = true };
    struct gate *gate = replication_gate(r);
    bool current;

    primary_drop_all(r->primary, "all data was replaced");
    figures_settle(r); /* their positions mean nothing in the new log */
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
    return strcmp(stamp->history, r->following.arriving.history) == 0 &&
           stamp->position >= r->following.arriving.position &&
           stamp->sequence >= r->following.arriving.sequence;
}

static void
end_load(struct replication *r)
{
    struct snapshot_stamp stamp;
    struct keyspace *fresh = transfer_take(r->following.transfer, &stamp);
    bool good = is_as_announced(r, &stamp);
    const char *reason = "the snapshot is not the one that was announced";

    transfer_free(r->following.transfer);
    r->following.transfer = NULL;
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
        "history=%s position=%llu keys=%llu", r->following.arriving.history,
        (unsigned long long)stamp.position, (unsigned long long)stamp.keys);
    r->following.stores = true;
}

/* The link is up once the disk has what came; a disk that fails delays it no
 * longer. */
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

    switch (transfer_poll(r->following.transfer, reason, sizeof(reason))) {
    case TRANSFER_RUNS:
        break;
    case TRANSFER_LOADED:
        if (r->following.complete && /* else further bytes fail it */
            persist_has_received(r->loop0->service->persist)) {
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
    if (r->following.transfer != NULL) {
        look_at_transfer(r);
    }
    if (r->following.stores) {
        end_store(r);
    }
    if (r->following.waits_for_room && !r->following.holds &&
        (r->following.transfer == NULL
             ? service_takes_logs(r->loop0->service)
             : transfer_has_room(r->following.transfer))) {
        r->following.waits_for_room = false;
        replica_go_on(r->replica, replication_now_ms());
    }
    set_link_up(r);
}

/* ---- secrets ------------------------------------------------------------- */

static bool
wants_secret(void *ctx, uint64_t fingerprint)
{
    struct replication *r = ctx;
    bool wants = secrets_wants(fingerprint);

    r->following.secrets_lacking += wants;
    return wants;
}

static enum replica_learned
learn(void *ctx, uint64_t fingerprint, const char *digits)
{
    struct replication *r = ctx;
    enum replica_learned learned =
        secrets_learn(r->loop0->service->persist, fingerprint, digits);

    r->following.secrets_lacking -= learned == REPLICA_LEARNED;
    return learned;
}

const struct replica_hooks following_hooks = { .dial = dial_primary,
                                               .send = send_bytes,
                                               .close = close_link,
                                               .pause = pause_link,
                                               .where = where,
                                               .apply = apply,
                                               .holdings = take_holdings,
                                               .load_begin = load_begin,
                                               .load_bytes = load_bytes,
                                               .load_end = load_end,
                                               .load_cancel = load_cancel,
                                               .key = take_key,
                                               .chained = chained,
                                               .wants = wants_secret,
                                               .learn = learn };

/* ---- begin and end ------------------------------------------------------- */

void
following_begin(struct replication *r, const struct role *role, bool failover)
{
    struct replica_target target = { .host = role->host,
                                     .port = role->port,
                                     .failover = failover };

    r->epoch = role->epoch;
    r->following.up.moved = on_link;
    r->following.up.ctx = r;
    r->following.released_above = false;
    r->following.waits_for_room = false;
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
    load_cancel(r);
    r->following.waits_for_room = false;
    r->following.released_above = false;
    r->following.synced_once = false;
    set_link_up(r);
}
