/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start order, stop order, signals and timers. Start: configuration,
 * descriptors, keyspace, sockets, loops, threads, and only then the first
 * accept. Stop is the reverse.
 */
#include "server/server.h"

#include "access/acl_log.h"
#include "access/auth_delay.h"
#include "access/users.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/systemd.h"
#include "command/rows.h"
#include "conf/conf_file.h"
#include "engine/client.h"
#include "engine/dispatch.h"
#include "engine/expiry.h"
#include "engine/gateway.h"
#include "engine/observe.h"
#include "engine/revoke.h"
#include "engine/slow.h"
#include "heal/merge_state.h"
#include "keyspace/gate.h"
#include "measure/latency.h"
#include "measure/sampler.h"
#include "measure/slowlog.h"
#include "net/loop_run.h"
#include "net/pending.h"
#include "net/registry.h"
#include "push/monitor.h"
#include "push/pubsub.h"
#include "push/tracking.h"
#include "repl/status.h"
#include "roles/followers.h"
#include "roles/kept_role.h"
#include "roles/replication_state.h"
#include "server/check_config.h"
#include "server/data.h"
#include "server/descriptors.h"
#include "server/heartbeat.h"
#include "server/options.h"
#include "server/own_files.h"
#include "server/own_tls.h"
#include "server/own_users.h"
#include "server/replication.h"
#include "server/server_state.h"
#include "server/shutdown.h"
#include "server/wake.h"
#include "server/watch.h"
#include "server/web.h"
#include "sidecar/sidecar_mode.h"

#include <bloomery_version.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    THREADS_DEFAULT_MAX = 8,
    RECLAIM_EVERY_MS = 100,
    RECLAIM_SOON_MS = 2,
    RECLAIM_BUDGET_US = 1000,
    DEFRAG_WAITS_MS = 1000,
};

/* ---- signals and timers, loop 0 ------------------------------------------ */

static void
on_stop_signal(uv_signal_t *handle, int number)
{
    shutdown_by_signal(handle->data, number);
}

static void
on_reload_signal(uv_signal_t *handle, int number)
{
    (void)number;
    options_reload(handle->data);
}

static void
on_reclaim(uv_timer_t *timer)
{
    struct server *server = timer->data;
    struct service *service = &server->service;
    bool more = false;
    uint64_t began_ns = clock_mono_ns();

    if (atomic_load(&service->loading)) {
        (void)uv_timer_start(timer, on_reclaim, RECLAIM_EVERY_MS, 0);
        return;
    }
    more =
        expiry_reclaim(server->workers[0], clock_wall_ms(), RECLAIM_BUDGET_US);
    watch_reclaimed(service, clock_mono_ns() - began_ns, more);
    more = tracking_sweep(service->tracking) || more;
    (void)uv_timer_start(timer, on_reclaim,
                         more ? RECLAIM_SOON_MS : RECLAIM_EVERY_MS, 0);
}

static void
on_defrag(uv_timer_t *timer)
{
    struct server *server = timer->data;
    uint64_t next_ms = DEFRAG_WAITS_MS;

    if (!atomic_load(&server->service.loading)) {
        next_ms = defrag_run(&server->defrag, server->workers[0]);
    }
    (void)uv_timer_start(timer, on_defrag, next_ms, 0);
}

static void
start_signal(struct server *server, uv_signal_t *handle, uv_signal_cb cb,
             int number)
{
    CHECK(uv_signal_init(&server->loops[0].uv, handle) == 0);
    handle->data = server;
    CHECK(uv_signal_start(handle, cb, number) == 0);
}

static void
start_handles(struct server *server)
{
    uv_loop_t *uv = &server->loops[0].uv;

    start_signal(server, &server->sigterm, on_stop_signal, SIGTERM);
    start_signal(server, &server->sigint, on_stop_signal, SIGINT);
    start_signal(server, &server->sighup, on_reload_signal, SIGHUP);
    data_start_handles(server);
    replication_start_handles(server);
    sidecar_mode_start(server->sidecar);
    CHECK(uv_timer_init(uv, &server->reclaim) == 0);
    server->reclaim.data = server;
    CHECK(uv_timer_start(&server->reclaim, on_reclaim, RECLAIM_EVERY_MS, 0) ==
          0);
    CHECK(uv_timer_init(uv, &server->defrag_timer) == 0);
    server->defrag_timer.data = server;
    CHECK(uv_timer_start(&server->defrag_timer, on_defrag, DEFRAG_WAITS_MS,
                         0) == 0);
    heartbeat_start(server);
}

/* Blocks signals until there is a handler. Threads started meanwhile keep them
 * blocked, so that only the main thread gets them. */
static void
block_signals(bool block)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    CHECK(pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL) == 0);
}

/* ---- start and stop ------------------------------------------------------ */

static unsigned
thread_count(const struct conf *conf)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (conf->threads > 0) {
        return (unsigned)conf->threads;
    }
    if (cores < 1) {
        return 1;
    }
    return cores < THREADS_DEFAULT_MAX ? (unsigned)cores : THREADS_DEFAULT_MAX;
}

static bool
open_sockets(struct server *server)
{
    const struct conf *conf = &server->conf;
    char tls_reason[TLS_REASON_MAX];
    char reason[LISTENER_REASON_MAX];
    struct listen_options options = {
        .bind = conf->bind,
        .port = (unsigned)conf->port,
        .tls_port = (unsigned)conf->tls_port,
        .admin_bind = conf->admin_bind,
        .admin_port = (unsigned)conf->admin_port,
        .metrics_bind = conf->metrics_bind,
        .metrics_port = (unsigned)conf->metrics_port,
        .unix_path = conf->unixsocket,
        .unix_group = conf->unixsocketgroup,
        .unix_mode = conf->unixsocketperm,
        .backlog = (int)conf->tcp_backlog,
        .given_first = SYSTEMD_SOCKETS_FIRST,
        .given_count = systemd_sockets(),
    };

    if (!own_tls_load(server, conf, tls_reason)) {
        log_error("server", "not started", "reason=\"%s\"", tls_reason);
        server->exit = SERVER_EXIT_MISTAKE;
        return false;
    }
    if (!listeners_open(&server->listeners, &options, reason)) {
        log_error("server", "not started", "reason=\"%s\"", reason);
        return false;
    }
    return true;
}

static bool
on_expiry_begin(void *ctx, unsigned thread)
{
    const struct server *server = ctx;

    return expiry_begin(server->workers[thread]);
}

static bool
on_expiry_remove(void *ctx, unsigned thread, const struct key *key)
{
    const struct server *server = ctx;

    return expiry_remove(server->workers[thread], key);
}

static void
on_expiry_end(void *ctx, unsigned thread, unsigned stripe)
{
    const struct server *server = ctx;

    expiry_end(server->workers[thread], stripe);
}

static void
init_service(struct server *server, const struct conf_args *args)
{
    struct service *service = &server->service;
    struct tracking_limits tracking_limits = { &service->tracking_keys_max,
                                               &service->tracking_bytes_max };
    ssize_t len = readlink("/proc/self/exe", server->executable,
                           sizeof(server->executable) - 1);

    server->executable[len > 0 ? len : 0] = '\0';
    service->config_is_input =
        args->file != NULL && strcmp(args->file, "-") == 0;
    if (args->file == NULL || service->config_is_input ||
        realpath(args->file, server->config_file) == NULL) {
        server->config_file[0] = '\0';
    }
    service->threads = server->threads;
    service->keyspace = keyspace_new(&(struct keyspace_options){
        .threads = server->threads,
        .databases = (unsigned)server->conf.databases,
        .expiry = { .begin = on_expiry_begin,
                    .remove = on_expiry_remove,
                    .end = on_expiry_end,
                    .ctx = server } });
    service->stats = stats_new(server->threads, CMD_ID_COUNT);
    service->pubsub = pubsub_new(server->threads);
    pubsub_announce(service->pubsub, &service->observed, OBSERVED_FILTERS);
    service->tracking = tracking_new(server->threads, &tracking_limits);
    service->monitor = monitor_new(server->threads);
    service->inboxes =
        inboxes_new(server->threads, &service->inbox_limit_bytes);
    service->sampler = sampler_new();
    service->slowlog = slowlog_new();
    service->latency = latency_new();
    slow_apply_conf(service);
    service->registry = registry_new();
    service->usage = &server->usage;
    own_users_forbid(&server->conf);
    service->users = users_new();
    service->acl_log = acl_log_new();
    service->auth_delay = auth_delay_new();
    service->conf_file = conf_file_new(&server->given, wake_loops, server);
    random_hex(service->run_id, sizeof(service->run_id) - 1);
    service->started_ms = clock_wall_ms();
    service->started_mono_ns = clock_mono_ns();
    service->executable = server->executable;
    service->config_file = server->config_file;
    service->wake_loops = wake_loops;
    service->shutdown = shutdown_ask;
    service->shutdown_abort = wake_persist;
    service->conf_allows = options_allow;
    service->conf_changed = options_changed;
    service->users_changed = options_users_changed;
    service->ctx = server;
    server->loop0.service = service;
    atomic_store(&service->loading, true);
    service->status = status_new();
    server->replication = replication_new(server);
    server->persist = data_new(server);
    service->persist = server->persist;
    service->tls = &server->tls;
    server->web = web_new(server);
}

static void
free_service(struct server *server)
{
    struct service *service = &server->service;

    sidecar_mode_fini(server->sidecar);
    server->sidecar = NULL;
    web_free(server->web);
    replication_free(server->replication);
    persist_free(server->persist);
    status_free(service->status);
    conf_file_free(service->conf_file);
    acl_log_free(service->acl_log);
    users_free(service->users);
    auth_delay_free(service->auth_delay);
    registry_free(service->registry);
    inboxes_free(service->inboxes);
    monitor_free(service->monitor);
    tracking_free(service->tracking);
    pubsub_free(service->pubsub);
    latency_free(service->latency);
    slowlog_free(service->slowlog);
    sampler_free(service->sampler);
    stats_free(service->stats);
    keyspace_free(service->keyspace);
    tls_contexts_fini(&server->tls);
    conf_fini(&server->conf);
    conf_fini(&server->given);
}

/* Called before there are keys. */
static bool
open_sidecar(struct server *server)
{
    char reason[SIDECAR_MODE_REASON_MAX];

    if (!sidecar_mode_init(&server->loop0, server->replication,
                           &server->sidecar, reason)) {
        server->exit = SERVER_EXIT_MISTAKE;
        log_error("server", "not started", "reason=\"%s\"", reason);
        return false;
    }
    return true;
}

/* Called before the notices of a loop are delivered. */
static void
on_woken(void *ctx)
{
    const struct worker *worker = ctx;
    const struct server *server = worker->service->ctx;

    revoke_lost(ctx);
    if (worker->index == 0) {
        followers_revoke(server->replication);
    }
}

static void
init_loops(struct server *server)
{
    struct inbox_reader reader = observe_reader;

    reader.woken = on_woken;
    server->loop_env = (struct loop_env){
        .limits = &server->net_limits,
        .handler = &gateway_handler,
        .released = journal_released(persist_journal(server->persist)),
        .gives_up = persist_gives_up(server->persist),
        .log_end = journal_end(persist_journal(server->persist)),
        .registry = server->service.registry,
        .usage = &server->usage,
        .tls = &server->tls,
    };
    server->loops = mem_zalloc(server->threads * sizeof(*server->loops));
    server->workers =
        mem_zalloc(server->threads * sizeof(struct worker *)); /* NOLINT */
    for (unsigned i = 0; i < server->threads; i++) {
        server->workers[i] = dispatch_new_worker(&server->service, i);
        loop_init(&server->loops[i], i, &server->loop_env, server->workers[i]);
        server->workers[i]->loop = &server->loops[i];
        reader.ctx = server->workers[i];
        inboxes_attach(server->service.inboxes, i, &server->loops[i].mailbox,
                       &reader);
    }
    server->loop0.loop = &server->loops[0];
    server->loop0.worker = server->workers[0];
}

static bool
open_role(struct server *server)
{
    enum kept_role opened = kept_role_open(server->replication);

    if (opened == KEPT_ROLE_REFUSED) {
        server->exit = SERVER_EXIT_MISTAKE;
    }
    return opened == KEPT_ROLE_OPEN;
}

/* Reads the users, and logs each mistake of the configuration. */
static bool
is_sound(struct server *server)
{
    struct buf reasons = { 0 };
    bool sound = check_options(&server->conf, &reasons);
    struct slice rest, line;

    if (!own_users_read(server->service.users, &server->conf, &reasons)) {
        buf_append(&reasons, "\n", 1);
        sound = false;
    }
    rest = buf_slice(&reasons);
    while (conf_next_note(&rest, &line)) {
        log_error("server", "not started", "reason=\"%.*s\"", (int)line.len,
                  line.data);
    }
    buf_free(&reasons);
    return sound;
}

/* Reads and opens what the configuration names. */
static bool
open_named(struct server *server)
{
    bool sound = is_sound(server);

    options_apply(server);
    own_files_warn_of_modes(&server->conf);
    if (!sound) {
        server->exit = SERVER_EXIT_MISTAKE;
    }
    if (sound && open_sidecar(server) && persist_open(server->persist) &&
        open_role(server) && sidecar_mode_open(server->sidecar) &&
        open_sockets(server)) {
        merge_state_open(&server->replication->merge_state, &server->service);
        return true;
    }
    if (persist_refuses_data(server->persist)) {
        server->exit = SERVER_EXIT_DATA;
    }
    return false;
}

bool
server_init(struct server *server, struct conf *conf, struct conf *given,
            const struct conf_args *args, int argc, char **argv)
{
    const char *cpu;

    block_signals(true);
    (void)signal(SIGPIPE, SIG_IGN);
    memset(server, 0, sizeof(*server));
    server->conf = *conf;
    server->given = *given;
    server->argc = argc;
    server->argv = argv;
    server->exit = SERVER_EXIT_FAILED;
    server->threads = thread_count(conf);
    server->service.conf = &server->conf;
    server->own_descriptors = descriptors_own(&server->conf, server->threads);
    if (!descriptors_fit(&server->conf, server->own_descriptors)) {
        return false;
    }
    log_set_level((enum log_level)server->conf.loglevel);
    hash_seed_process();
    key_hash_by_slot(server->conf.sidecar_of[0] != '\0');
    command_table_init(command_rows);
    cpu = bloom_select_cpu(false);
    tls_contexts_init(&server->tls);
    init_service(server, args);
    if (!open_named(server)) {
        kept_role_close(server->replication);
        sidecar_mode_close(server->sidecar);
        free_service(server);
        return false;
    }
    own_files_write_pid(server->conf.pidfile);
    init_loops(server);
    heartbeat_init(server);
    persist_apply_conf(server->persist);
    server->service.started_bytes = mem_used();
    log_notice("server", "started",
               "version=%s pid=%d threads=%u port=%lld tls-port=%lld "
               "metrics-port=%lld unixsocket=\"%s\" "
               "cpu=%s config=\"%s\"",
               BLOOMERY_VERSION, (int)getpid(), server->threads,
               (long long)server->conf.port, (long long)server->conf.tls_port,
               (long long)server->conf.metrics_port, server->conf.unixsocket,
               cpu, server->config_file);
    options_log_notes(server, args);
    return true;
}

void
server_run(struct server *server)
{
    server->exit = SERVER_EXIT_STOPPED;
    start_handles(server);
    block_signals(false);
    web_start(server->web);
    listeners_start(&server->listeners, server->loops, server->threads);
    for (unsigned i = 1; i < server->threads; i++) {
        loop_start(&server->loops[i]);
    }
    data_start_load(server);
    loop_run(&server->loops[0]);
    for (unsigned i = 1; i < server->threads; i++) {
        loop_join(&server->loops[i]);
    }
    own_files_remove_pid(server->conf.pidfile);
    log_notice("server", "stopped", "%s", "");
}

void
server_fini(struct server *server)
{
    conf_file_free(server->service.conf_file); /* this wakes the loops */
    server->service.conf_file = NULL;
    kept_role_close(server->replication);
    merge_state_close(&server->replication->merge_state);
    sidecar_mode_close(server->sidecar);
    for (unsigned i = 0; i < server->threads; i++) {
        loop_fini(&server->loops[i]);
        dispatch_free_worker(server->workers[i]);
    }
    heartbeat_fini(server);
    mem_free(server->loops);
    mem_free(server->workers);
    free_service(server);
    systemd_fini();
}
