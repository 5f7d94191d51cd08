/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connects replication to the options, the timers, persist and the commands.
 */
#include "server/replication.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "dial/secrets.h"
#include "engine/role.h"
#include "heal/merge.h"
#include "heal/merge_state.h"
#include "persist/persist.h"
#include "persist/place.h"
#include "persist/rewrite.h"
#include "roles/failover.h"
#include "roles/figures.h"
#include "roles/followers.h"
#include "roles/following.h"
#include "roles/grace.h"
#include "roles/kept_role.h"
#include "roles/outgoing.h"
#include "roles/replication_state.h"
#include "roles/role_change.h"
#include "server/server_state.h"
#include "slots/pull.h"
#include "slots/slot_drop.h"
#include "slots/slot_figures.h"

#include <stdio.h>

enum { GROUP_EXTRA_BYTES = 64 << 20 };

/* Has loop 0 look at all of replication soon. Any thread. */
static void
poke(void *ctx)
{
    struct replication *r = ctx;

    (void)uv_async_send(&r->poke);
}

/* ---- options ------------------------------------------------------------- */

/* Returns the port at which others reach this server; the primary tells it. */
static unsigned
listening_port(const struct conf *conf)
{
    if (conf->replica_announce_port > 0) {
        return (unsigned)conf->replica_announce_port;
    }
    return (unsigned)(conf->tls_replication && conf->tls_port > 0
                          ? conf->tls_port
                          : conf->port);
}

/* Copies the options in force. Inside the gate. */
static void
copy_conf(struct replication *r)
{
    const struct conf *conf = r->loop0->service->conf;
    const struct conf_output_limit *output =
        &conf->client_output_buffer_limit.of[CONF_OUTPUT_REPLICA];
    struct primary_limits limits = {
        .timeout_ms = (uint64_t)conf->repl_timeout * 1000,
        .ping_ms = (uint64_t)conf->repl_ping_replica_period * 1000,
        .sync_delay_ms = (uint64_t)conf->repl_diskless_sync_delay * 1000,
        .backlog_bytes = conf->repl_backlog_size,
        .merge_bytes = conf->merge_on_heal ? conf->merge_log_max_bytes : 0,
        .replicas_max = (size_t)conf->max_replicas,
        .hard_bytes = output->hard_bytes,
        .soft_bytes = output->soft_bytes,
        .soft_ms = output->soft_seconds * 1000,
    };
    struct replica_options options = {
        .timeout_ms = limits.timeout_ms,
        .group_max = conf->proto_max_bulk_len + conf->multi_max_bytes +
                     GROUP_EXTRA_BYTES,
        .user = conf->masteruser,
        .password = conf->masterauth,
        .announce_ip = conf->replica_announce_ip,
        .port = listening_port(conf),
        .wants_holdings = r->loop0->service->cluster != NULL,
    };

    struct merge_options merge = {
        .on = conf->merge_on_heal,
        .dir = persist_dir(r->loop0->service->persist),
        .journal = conf->appendonly ? conf->appenddirname : NULL,
        .quarantine_max = conf->merge_quarantine_max_bytes,
        .timeout_ms = limits.timeout_ms,
    };

    primary_set_limits(r->primary, &limits);
    merge_set_options(r->merge, &merge);
    replica_set_options(r->replica, &options);
    r->merge_journal_bytes =
        conf->merge_on_heal ? conf->merge_journal_max_bytes : 0;
    r->backlog_ttl_ms = (uint64_t)conf->repl_backlog_ttl * 1000;
    r->following.up.keepalive_s = (unsigned)conf->tcp_keepalive;
    r->following.up.uses_tls = r->uses_tls = conf->tls_replication;
    pull_set_options(r->pull, &options, &r->following.up);
}

static void
follow_conf(struct replication *r)
{
    if (atomic_exchange(&r->shared.conf_changed, false)) {
        gate_enter(replication_gate(r), 0);
        copy_conf(r);
        gate_leave(replication_gate(r), 0);
    }
}

void
replication_apply_conf(struct server *server)
{
    if (server->replication != NULL) {
        atomic_store(&server->replication->shared.conf_changed, true);
        figures_judge(&server->service);
    }
}

void
replication_read_secrets(struct server *server)
{
    struct replication *r = server->replication;

    if (secrets_reload(server->persist) && r != NULL) {
        replica_hasten(r->replica, replication_now_ms());
        pull_hurry(r->pull);
    }
}

/* ---- the log ------------------------------------------------------------ */

/* Frees the backlog of a primary that has had no replica for repl-backlog-ttl.
 */
static void
expire_backlog(struct replication *r)
{
    uint64_t now_ms = replication_now_ms();
    uint64_t ttl_ms = r->backlog_ttl_ms;

    if (primary_replicas(r->primary) > 0 || !atomic_load(&r->shared.streams) ||
        replication_role(r).replica || ttl_ms == 0) {
        r->alone_since_ms = 0;
    } else if (r->alone_since_ms == 0) {
        r->alone_since_ms = now_ms;
    } else if (now_ms - r->alone_since_ms >= ttl_ms) {
        outgoing_close(r);
    }
}

/* Begins the backlog again if there was no memory for it. */
static void
restart_backlog(struct replication *r)
{
    uint64_t position;
    uint64_t sequence;

    if (!backlog_is_broken(r->backlog)) {
        return;
    }
    log_error("server.replication", "lost the backlog",
              "reason=\"no memory for it\"%s", "");
    primary_drop_all(r->primary, "there was no memory for the backlog");
    gate_raise(replication_gate(r), 0);
    persist_place(r->loop0->service->persist, &position, &sequence);
    backlog_begin(r->backlog, position);
    gate_lower(replication_gate(r), 0);
}

/* Makes rewrites of the journal keep what no replica has acknowledged:
 * everything, until a replica has acknowledged something since this start, but
 * nothing if there are no replicas. A replica keeps everything until its data
 * is the primary's, and then nothing. */
static void
keep_log(struct replication *r)
{
    uint64_t furthest = primary_furthest(r->primary);
    uint64_t needed = UINT64_MAX;

    if (replication_role(r).replica) {
        needed = r->following.synced_once ? UINT64_MAX : 0;
    } else if (r->has_replicas || primary_replicas(r->primary) > 0) {
        needed = furthest;
    }
    persist_keep_log(r->loop0->service->persist, needed,
                     r->merge_journal_bytes);
    if (r->merge_journal_bytes > 0) { /* there may be merges */
        merge_state_look(&r->merge_state);
    }
}

/* ---- rounds -------------------------------------------------------------- */

static void
tick_replica(struct replication *r)
{
    replica_tick(r->replica, replication_now_ms());
}

static void
tick_primary(struct replication *r)
{
    primary_tick(r->primary, replication_now_ms());
}

static void
look_at_merge(struct replication *r)
{
    merge_look(r->merge);
}

static void
tick_pull(struct replication *r)
{
    pull_tick(r->pull);
}

static void
look_at_pull(struct replication *r)
{
    pull_look(r->pull);
}

static void
look_at_drop(struct replication *r)
{
    slot_drop_look(r->drop);
}

static void
publish_slots(struct replication *r)
{
    slot_figures_publish(r->slot_figures);
}

enum {
    AT_POKE = 1, /* another thread, or a room, has something for loop 0 */
    AT_TICK = 2,
    ALWAYS = AT_POKE | AT_TICK,
    UNLESS_ENDING = 4 /* rounds that change data, which a stop forbids */
};

/* What loop 0 looks at, in this order. */
static const struct round {
    unsigned when;
    void (*look)(struct replication *r);
} rounds[] = {
    /* First the options and the role: all others act by them. */
    { ALWAYS, follow_conf },
    { ALWAYS, role_change_look },
    { ALWAYS, grace_look },
    { AT_TICK, keep_log },
    /* Our primary. A snapshot waits until the merge has saved our data. */
    { AT_TICK, tick_replica },
    { ALWAYS, look_at_merge },
    { ALWAYS, following_look },
    /* Our replicas: a new backlog before anything is sent from it. */
    { AT_TICK, restart_backlog },
    { AT_TICK, outgoing_send },
    { AT_TICK, tick_primary },
    { AT_TICK, expire_backlog },
    { ALWAYS, failover_tick },
    /* What the disk must know about the rounds above; then slots. */
    { AT_TICK, role_change_note_history },
    { AT_TICK, kept_role_update },
    { AT_TICK | UNLESS_ENDING, tick_pull },
    { ALWAYS | UNLESS_ENDING, look_at_pull },
    { ALWAYS | UNLESS_ENDING, look_at_drop },
    /* Last the figures, and the log that the rounds above have written. */
    { ALWAYS, publish_slots },
    { AT_TICK, figures_show },
    { AT_POKE, outgoing_look },
};

static void
look_at_rounds(struct replication *r, unsigned when)
{
    if (r->life != REPLICATION_RUNS) {
        return;
    }
    for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
        bool held = (rounds[i].when & UNLESS_ENDING) != 0 &&
                    atomic_load(&r->loop0->service->ending) != SERVICE_RUNS;

        if ((rounds[i].when & when) != 0 && !held) {
            rounds[i].look(r);
        }
    }
}

static void
on_poke(uv_async_t *async)
{
    look_at_rounds(async->data, AT_POKE);
}

static void
on_tick(uv_timer_t *timer)
{
    look_at_rounds(timer->data, AT_TICK);
}

void
replication_reloaded(struct server *server)
{
    struct replication *r = server->replication;
    const struct history *history = persist_history(server->persist);

    if (!r->following.adopting && strcmp(history->id, r->history) != 0) {
        primary_drop_all(r->primary, "all data was replaced");
        primary_set_history(r->primary, history, r->key);
        replica_distrust(r->replica);
        following_kill(r, "all data was replaced");
        pull_begin_anew(r->pull, "all data was replaced");
    }
}

void
replication_moved(void *ctx)
{
    const struct server *server = ctx;
    struct replication *r = server->replication;

    if (r != NULL &&
        (atomic_load(&r->shared.streams) || atomic_load(&r->shared.settles))) {
        outgoing_poke(r);
    }
}

static void
seal(void *ctx)
{
    (void)outgoing_seal(ctx);
}

/* ---- hooks of commands --------------------------------------------------- */

/* Closes the link with this client id, on loop 0. */
static void
kill_link(struct loop *loop, void *ptr, uint64_t id)
{
    struct replication *r = ptr;

    (void)loop;
    if (r->life != REPLICATION_RUNS) {
        return;
    }
    followers_kill(r, id);
    if (id == r->following.up.id) {
        following_kill(r, "killed by a client");
    }
}

static bool
on_kill(void *ctx, uint64_t id)
{
    struct replication *r = ctx;

    return mailbox_post(&r->loop0->loop->mailbox, kill_link, r, id);
}

/* ---- life ---------------------------------------------------------------- */

struct replication *
replication_new(struct server *server)
{
    struct replication *r = mem_zalloc(sizeof(*r));
    struct primary_hooks followers = followers_hooks;
    struct service *service = &server->service;

    r->loop0 = &server->loop0;
    followers.ctx = r;
    CHECK(pthread_mutex_init(&r->shared.mutex, NULL) == 0);
    r->backlog = backlog_new();
    r->primary = primary_new(r->backlog, &followers);
    r->replica = following_init(r);
    r->merge =
        merge_new(&(struct merge_roles){ .loop0 = r->loop0,
                                         .backlog = r->backlog,
                                         .state = &r->merge_state,
                                         .primary = r->primary,
                                         .replica = r->replica,
                                         .key = &r->key,
                                         .epoch = &r->epoch,
                                         .has_replicas = &r->has_replicas,
                                         .seal = seal,
                                         .poke = poke,
                                         .ctx = r });
    r->drop = slot_drop_new(r->loop0, poke, r);
    r->pull = pull_new(&(struct pull_roles){ .loop0 = r->loop0,
                                             .drop = r->drop,
                                             .settles = &r->shared.settles,
                                             .poke = poke,
                                             .ctx = r });
    r->slot_figures = slot_figures_new(service, r->pull, r->drop);
    service->replication = (struct replication_calls){
        .role_changed = poke,
        .want_acks = outgoing_ask,
        .hand_over = followers_take,
        .failover = failover_ask,
        .failover_abort = failover_abort,
        .kill = on_kill,
        .chain = figures_copy_chain,
        .role_is_kept = kept_role_is_settled,
        .ctx = r,
    };
    return r;
}

void
replication_free(struct replication *r)
{
    if (r == NULL) {
        return;
    }
    upstream_drop(&r->following.up);
    buf_free(&r->following.held);
    merge_free(r->merge);
    slot_figures_free(r->slot_figures);
    pull_free(r->pull);
    slot_drop_free(r->drop);
    apply_free(r->apply);
    replica_free(r->replica);
    primary_free(r->primary);
    backlog_free(r->backlog);
    pthread_mutex_destroy(&r->shared.mutex);
    mem_free(r);
}

void
replication_start_handles(struct server *server)
{
    struct replication *r = server->replication;
    uv_loop_t *uv = &server->loops[0].uv;

    CHECK(uv_async_init(uv, &r->poke, on_poke) == 0);
    CHECK(uv_timer_init(uv, &r->tick) == 0);
    outgoing_start(r, uv);
    slot_drop_start(r->drop, uv);
    r->poke.data = r->tick.data = r;
    CHECK(uv_timer_start(&r->tick, on_tick, REPLICATION_TICK_MS,
                         REPLICATION_TICK_MS) == 0);
}

void
replication_close_handles(struct server *server)
{
    struct replication *r = server->replication;

    uv_close((uv_handle_t *)&r->tick, NULL);
    outgoing_stop(r);
    slot_drop_close(r->drop);
    uv_close((uv_handle_t *)&r->poke, NULL);
}

/* Begins a new history at the end of the one that was loaded. */
static void
begin_to_lead(struct replication *r)
{
    struct persist *persist = r->loop0->service->persist;
    struct history loaded;
    uint64_t position;
    uint64_t sequence;

    gate_raise(replication_gate(r), 0);
    loaded = *persist_history(persist);
    persist_place(persist, &position, &sequence);
    persist_renew_history(persist);
    gate_lower(replication_gate(r), 0);
    role_change_note_history(r);
    grace_begin(r, &loaded, position);
}

void
replication_begin(struct server *server)
{
    struct replication *r = server->replication;
    struct role role = replication_role(r);

    r->apply = apply_new(server->workers[0]);
    CHECK(r->life == REPLICATION_LOADS);
    r->life = REPLICATION_RUNS;
    follow_conf(r);
    if (role.replica) {
        role_change_note_history(r);
        /* Set if the loaded data belongs to the primary's log. */
        r->following.synced_once = r->kept.history[0] != '\0' &&
                                   strcmp(r->kept.history, r->history) == 0;
        following_begin(r, &role, false);
    } else {
        if (r->has_replicas) { /* so that they can resume */
            outgoing_open(r);
        }
        begin_to_lead(r);
        r->epoch = role.epoch;
    }
    kept_role_update(r);
    keep_log(r);
    figures_show(r);
}

bool
replication_is_even(struct server *server)
{
    struct replication *r = server->replication;
    size_t max = primary_replicas(r->primary);
    struct status_replica *replicas =
        mem_try_alloc((max + 1) * sizeof(*replicas));
    struct status_figures figures;
    uint64_t position;
    uint64_t sequence;
    bool even = true;
    size_t count;

    if (replicas == NULL) {
        return false;
    }
    gate_raise(replication_gate(r), 0);
    persist_place(server->persist, &position, &sequence);
    gate_lower(replication_gate(r), 0);
    count = primary_describe(r->primary, &figures, replicas, max);
    for (size_t i = 0; i < count && i < max; i++) {
        even = even && (replicas[i].state != STATUS_ONLINE ||
                        replicas[i].acked >= position);
    }
    mem_free(replicas);
    if (!even) {
        outgoing_ask(r, position);
    }
    return even;
}

void
replication_stop(struct server *server)
{
    struct replication *r = server->replication;

    r->life = REPLICATION_STOPPED;
    following_end(r);
    merge_stop(r->merge);
    pull_stop(r->pull);
    slot_drop_stop(r->drop);
    primary_drop_all(r->primary, "the server ends");
    followers_close(r);
}
