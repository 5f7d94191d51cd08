/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Roles, timers, options, and the life of it all.
 */
#include "keyspace/gate.h"
#include "server/replication_internal.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "engine/role.h"
#include "persist/place.h"
#include "server/data.h"

#include <stdio.h>

enum { GROUP_EXTRA_BYTES = 64 << 20 };

uint64_t
replication_now_ms(void)
{
    return clock_mono_ns() / 1000000;
}

struct role
replication_role(const struct replication *r)
{
    struct role role;

    gate_enter(replication_gate(r), 0);
    role = r->server->service.role;
    gate_leave(replication_gate(r), 0);
    return role;
}

/* ---- the log's history ----------------------------------------------------
 */

/* It changes with the role, and in the middle of the log of our primary. */
void
replication_note_history(struct replication *r)
{
    const struct history *history = persist_history(r->server->persist);

    gate_enter(replication_gate(r), 0);
    if (strcmp(r->history, history->id) != 0) {
        memcpy(r->history, history->id, sizeof(r->history));
        primary_set_history(r->primary, history, r->key);
    }
    gate_leave(replication_gate(r), 0);
}

void
replication_settle(struct replication *r)
{
    if (r->acks_moved) {
        r->acks_moved = false;
        figures_show(r);
        data_wake_loops(r->server);
        failover_stir(r);
    }
}

/* ---- the role ------------------------------------------------------------ */

/* A server that replication never meant anything to leaves no file. */
void
replication_keep_role(struct replication *r)
{
    const struct role role = replication_role(r);
    struct role_state state = { .known = true,
                                .replica = role.replica,
                                .port = role.port,
                                .key = r->key,
                                .replicas = r->has_replicas };
    bool wanted = r->kept.known || state.replica || state.replicas;

    memcpy(state.host, role.host, sizeof(state.host));
    if (!role.replica || r->synced_once) {
        memcpy(state.history, r->history, sizeof(state.history));
    }
    if (!role.replica) {
        grace_fill(r, &state);
    }
    if (wanted && (!r->kept.known || !role_state_same(&r->kept, &state))) {
        r->kept = state;
        atomic_store(&r->kept_ticket, role_file_write(r->role_file, &state));
    }
    atomic_store(&r->kept_epoch, role.epoch);
}

void
replication_keep_role_again(struct server *server)
{
    struct replication *r = server->replication;

    if (r->kept.known) {
        atomic_store(&r->kept_ticket, role_file_write(r->role_file, &r->kept));
    }
}

/* Any loop. It is kept, or was at least tried to be. */
static bool
role_is_kept(void *ctx, uint64_t epoch)
{
    const struct server *server = ctx;
    struct replication *r = server->replication;

    return atomic_load(&r->kept_epoch) >= epoch &&
           role_file_outcome(r->role_file, atomic_load(&r->kept_ticket)) != 0;
}

/* With the gate raised, on any loop. */
static void
on_role_changed(void *ctx)
{
    struct server *server = ctx;

    (void)uv_async_send(&server->replication->poke);
}

void
replication_look_at_role(struct replication *r)
{
    struct role role = replication_role(r);

    if (!r->begun || role.epoch == r->epoch) {
        return;
    }
    grace_end(r);
    /* Who follows us is to hear whom that means now (chained, following.c). */
    primary_drop_all(r->primary, "the role has changed");
    if (role.replica) {
        following_begin(r, &role, r->failover.state == STATUS_FAILOVER_RUNS);
    } else {
        r->epoch = role.epoch;
        r->even = false;
        r->synced_once = false;
        following_end(r);
        log_notice("server.replication", "is a primary", "%s", "");
    }
    replication_note_history(r);
    replication_keep_role(r);
    figures_show(r);
    data_wake_loops(r->server);
}

/* ---- options ------------------------------------------------------------- */

/* Inside the gate. */
static void
take_conf(struct replication *r)
{
    const struct conf *conf = &r->server->conf;
    const struct conf_output_limit *output =
        &conf->client_output_buffer_limit.of[CONF_OUTPUT_REPLICA];
    struct primary_limits limits = {
        .timeout_ms = (uint64_t)conf->repl_timeout * 1000,
        .ping_ms = (uint64_t)conf->repl_ping_replica_period * 1000,
        .sync_delay_ms = (uint64_t)conf->repl_diskless_sync_delay * 1000,
        .backlog_bytes = conf->repl_backlog_size,
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
        .port = conf->replica_announce_port > 0
                    ? (unsigned)conf->replica_announce_port
                    : (unsigned)conf->port,
    };

    primary_set_limits(r->primary, &limits);
    replica_set_options(r->replica, &options);
    r->backlog_ttl_ms = (uint64_t)conf->repl_backlog_ttl * 1000;
    r->keepalive_s = (unsigned)conf->tcp_keepalive;
}

static void
follow_conf(struct replication *r)
{
    if (atomic_exchange(&r->conf_moved, false)) {
        gate_enter(replication_gate(r), 0);
        take_conf(r);
        gate_leave(replication_gate(r), 0);
    }
}

void
replication_apply_conf(struct server *server)
{
    if (server->replication != NULL) {
        atomic_store(&server->replication->conf_moved, true);
        figures_judge(server);
    }
}

/* ---- loop 0's calls ------------------------------------------------------ */

static void
on_poke(uv_async_t *async)
{
    struct replication *r = async->data;

    if (!r->begun || r->stopped) {
        return;
    }
    follow_conf(r);
    replication_look_at_role(r);
    grace_look(r);
    following_look(r);
    failover_tick(r);
    outgoing_look(r);
}

/* A primary that nobody follows any more gives the backlog back. */
static void
count_alone(struct replication *r, uint64_t now_ms)
{
    uint64_t ttl_ms = r->backlog_ttl_ms;

    if (primary_replicas(r->primary) > 0 || !atomic_load(&r->streams) ||
        replication_role(r).replica || ttl_ms == 0) {
        r->alone_since_ms = 0;
    } else if (r->alone_since_ms == 0) {
        r->alone_since_ms = now_ms;
    } else if (now_ms - r->alone_since_ms >= ttl_ms) {
        outgoing_close(r);
    }
}

static void
begin_backlog_anew(struct replication *r)
{
    uint64_t position;
    uint64_t sequence;

    log_error("server.replication", "lost the backlog",
              "reason=\"no memory for it\"%s", "");
    primary_drop_all(r->primary, "there was no memory for the backlog");
    gate_raise(replication_gate(r), 0);
    persist_place(r->server->persist, &position, &sequence);
    backlog_begin(r->backlog, position);
    gate_lower(replication_gate(r), 0);
}

static void
on_tick(uv_timer_t *timer)
{
    struct replication *r = timer->data;
    uint64_t now_ms = replication_now_ms();

    if (!r->begun || r->stopped) {
        return;
    }
    follow_conf(r);
    replication_look_at_role(r);
    replica_tick(r->replica, now_ms);
    following_look(r);
    if (backlog_is_broken(r->backlog)) {
        begin_backlog_anew(r);
    }
    outgoing_send(r);
    primary_tick(r->primary, now_ms);
    count_alone(r, now_ms);
    failover_tick(r);
    grace_look(r);
    replication_note_history(r);
    replication_keep_role(r);
    figures_show(r);
}

/* What was loaded may be of a history of its own. */
void
replication_reloaded(struct server *server)
{
    struct replication *r = server->replication;
    const struct history *history = persist_history(server->persist);

    if (!r->adopts && strcmp(history->id, r->history) != 0) {
        primary_drop_all(r->primary, "all data was replaced");
        primary_set_history(r->primary, history, r->key);
        replica_distrust(r->replica);
        following_kill(r, "all data was replaced");
    }
}

void
replication_moved(struct server *server)
{
    struct replication *r = server->replication;

    if (r != NULL && atomic_load(&r->streams)) {
        outgoing_stir(r);
    }
}

void
replication_sync_began(struct server *server, int fd, int error,
                       uint64_t position, uint64_t sequence)
{
    int64_t bytes = metric_sum(METRIC_BF_MEMORY);
    struct primary_sync sync = { .position = position,
                                 .sequence = sequence,
                                 .bytes = bytes > 0 ? (uint64_t)bytes : 0 };

    gate_enter(replication_gate(server->replication), 0);
    memcpy(sync.history, persist_history(server->persist)->id,
           sizeof(sync.history));
    gate_leave(replication_gate(server->replication), 0);
    followers_sync_began(server->replication, fd, error, &sync);
}

void
replication_sync_ended(struct server *server, int error)
{
    followers_sync_ended(server->replication, error);
}

/* ---- what commands ask for ----------------------------------------------- */

static void
on_want_acks(void *ctx, uint64_t position)
{
    struct server *server = ctx;

    outgoing_ask(server->replication, position);
}

/* On loop 0. */
static void
kill_link(struct loop *loop, void *ptr, uint64_t id)
{
    struct server *server = ptr;
    struct replication *r = server->replication;

    (void)loop;
    if (!r->begun || r->stopped) {
        return;
    }
    followers_kill(r, id);
    if (id == r->link_id) {
        following_kill(r, "killed by a client");
    }
}

static void
on_kill(void *ctx, uint64_t id)
{
    struct server *server = ctx;

    (void)mailbox_post(&server->loops[0].mailbox, kill_link, server, id);
}

/* ---- life ---------------------------------------------------------------- */

static void
on_role_written(void *ctx)
{
    data_wake_loops(ctx);
}

struct replication *
replication_new(struct server *server)
{
    struct replication *r = mem_zalloc(sizeof(*r));
    struct replica_hooks following = following_hooks;
    struct primary_hooks followers = followers_hooks;
    struct service *service = &server->service;

    r->server = server;
    following.ctx = followers.ctx = r;
    CHECK(pthread_mutex_init(&r->mutex, NULL) == 0);
    r->backlog = backlog_new();
    r->primary = primary_new(r->backlog, &followers);
    r->replica = replica_new(service->run_id, &following);
    service->replication = (struct replication_calls){
        .role_changed = on_role_changed,
        .want_acks = on_want_acks,
        .hand_over = followers_take,
        .failover = failover_ask,
        .failover_abort = failover_abort,
        .kill = on_kill,
        .chain = figures_copy_chain,
        .role_is_kept = role_is_kept,
    };
    return r;
}

void
replication_free(struct replication *r)
{
    if (r == NULL) {
        return;
    }
    transfer_free(r->transfer);
    apply_free(r->apply);
    replica_free(r->replica);
    primary_free(r->primary);
    backlog_free(r->backlog);
    pthread_mutex_destroy(&r->mutex);
    mem_free(r);
}

static bool
read_role(const char *dir, struct role_state *ret_state, char *ret_reason,
          unsigned reason_size)
{
    int fd = -1;
    int error = file_open_dir(dir, false, &fd);
    bool read = false;

    if (error != 0) {
        (void)snprintf(ret_reason, reason_size, "%s", strerror(error));
    } else {
        read = role_file_read(fd, ret_state, ret_reason, reason_size);
    }
    file_close(fd);
    return read;
}

/* As it was kept, or else as it is configured. */
bool
replication_open(struct server *server)
{
    struct replication *r = server->replication;
    struct role_state state;
    struct conf *conf = &server->conf;
    char reason[STATUS_TEXT_MAX];
    struct slice words = slice_of(conf->replicaof);
    struct slice host;
    struct slice port_text;
    uint64_t port = 0;

    if (!read_role(conf->dir, &state, reason, sizeof(reason))) {
        log_error("server.replication", "cannot read the role",
                  "file=\"%s/" ROLE_FILE_NAME "\" reason=\"%s\"", conf->dir,
                  reason);
        return false;
    }
    if (reason[0] != '\0') {
        log_warn("server.replication", "set the kept role aside",
                 "reason=\"%s\"", reason);
    }
    r->kept = state;
    r->role_file =
        role_file_new(persist_dir(server->persist), on_role_written, server);
    r->key = state.key;
    while (r->key == 0) {
        random_bytes(&r->key, sizeof(r->key));
    }
    r->has_replicas = state.known && state.replicas;
    if (state.known && conf->replicaof[0] != '\0') {
        log_notice("server.replication",
                   "goes by the role that was kept, not by replicaof",
                   "file=\"%s/" ROLE_FILE_NAME "\" replicaof=\"%s\"", conf->dir,
                   conf->replicaof);
    }
    if (state.known && state.replica) {
        role_set(&server->service, slice_of(state.host), state.port);
    } else if (!state.known && slice_next_word(&words, &host)) {
        if (!slice_next_word(&words, &port_text) ||
            !slice_to_u64(port_text, &port) || port == 0 || port > 65535 ||
            host.len >= ROLE_HOST_MAX) {
            log_error("server.replication", "cannot follow",
                      "replicaof=\"%s\" reason=\"it takes a host and a "
                      "port\"",
                      conf->replicaof);
            return false;
        }
        role_set(&server->service, host, (uint32_t)port);
    }
    if (server->service.role.replica &&
        !role_host_is_allowed(conf, slice_of(server->service.role.host))) {
        log_error("server.replication", "cannot follow",
                  "host=%s reason=\"replicaof-allowed does not name it\" "
                  "next=\"allow it, or remove %s\"",
                  server->service.role.host,
                  state.known ? ROLE_FILE_NAME " from dir" : "replicaof");
        return false;
    }
    if (state.known && !state.replica) {
        r->grace_ms = (uint64_t)conf->start_grace * 1000;
    }
    return true;
}

void
replication_start_handles(struct server *server)
{
    struct replication *r = server->replication;
    uv_loop_t *uv = &server->loops[0].uv;

    CHECK(uv_async_init(uv, &r->poke, on_poke) == 0);
    CHECK(uv_timer_init(uv, &r->tick) == 0);
    CHECK(uv_timer_init(uv, &r->flush) == 0);
    r->poke.data = r->tick.data = r->flush.data = r;
    CHECK(uv_timer_start(&r->tick, on_tick, REPLICATION_TICK_MS,
                         REPLICATION_TICK_MS) == 0);
}

void
replication_close_handles(struct server *server)
{
    struct replication *r = server->replication;

    uv_close((uv_handle_t *)&r->tick, NULL);
    uv_close((uv_handle_t *)&r->flush, NULL);
    uv_close((uv_handle_t *)&r->poke, NULL);
}

/* A new history goes on from where the one that was loaded has ended. */
static void
begin_to_lead(struct replication *r)
{
    struct persist *persist = r->server->persist;
    struct history loaded;
    uint64_t position;
    uint64_t sequence;

    gate_raise(replication_gate(r), 0);
    loaded = *persist_history(persist);
    persist_place(persist, &position, &sequence);
    persist_renew_history(persist);
    gate_lower(replication_gate(r), 0);
    replication_note_history(r);
    grace_begin(r, &loaded, position);
}

void
replication_begin(struct server *server)
{
    struct replication *r = server->replication;
    struct role role = replication_role(r);

    r->apply = apply_new(server->workers[0]);
    r->begun = true;
    follow_conf(r);
    if (role.replica) {
        replication_note_history(r);
        /* What the disk has is of our primary's log. */
        r->synced_once = r->kept.history[0] != '\0' &&
                         strcmp(r->kept.history, r->history) == 0;
        following_begin(r, &role, false);
    } else {
        if (r->has_replicas) { /* they go on from what we have */
            outgoing_open(r);
        }
        begin_to_lead(r);
        r->epoch = role.epoch;
    }
    replication_keep_role(r);
    figures_show(r);
}

void
replication_close_file(struct server *server)
{
    role_file_free(server->replication->role_file);
    server->replication->role_file = NULL;
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

    r->stopped = true;
    following_end(r);
    primary_drop_all(r->primary, "the server ends");
    followers_close(r);
}
