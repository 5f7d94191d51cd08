/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start order, stop order, signals, timers, and what a changed option does.
 * Start: configuration, descriptors, sockets, keyspace, loops, threads, and
 * only then the first accept. Stop is the reverse.
 */
#include "server/server.h"

#include "admin/acl_log.h"
#include "admin/auth.h"
#include "admin/auth_delay.h"
#include "admin/conf_file.h"
#include "admin/latency.h"
#include "admin/monitor.h"
#include "admin/pubsub.h"
#include "admin/sampler.h"
#include "admin/slowlog.h"
#include "admin/systemd.h"
#include "admin/tracking.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/random.h"
#include "command/rows.h"
#include "engine/client.h"
#include "engine/dispatch.h"
#include "engine/expiry.h"
#include "engine/gateway.h"
#include "engine/observe.h"
#include "engine/pause.h"
#include "engine/slow.h"
#include "keyspace/gate.h"
#include "net/pending.h"
#include "net/registry.h"
#include "repl/status.h"
#include "server/data.h"
#include "server/descriptors.h"
#include "server/own_files.h"
#include "server/replication.h"
#include "server/watch.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    THREADS_DEFAULT_MAX = 8,
    RECLAIM_EVERY_MS = 100,
    RECLAIM_SOON_MS = 2,
    RECLAIM_BUDGET_US = 1000,
};

static const uint64_t STOP_AGAIN_NS = 2000000000;
static const uint64_t SECOND_NS = 1000000000;

/* ---- options in force ---------------------------------------------------- */

static void
apply_output_limits(const struct conf *conf, struct net_limits *net)
{
    static const enum output_class classes[CONF_OUTPUT_CLASSES] = {
        [CONF_OUTPUT_NORMAL] = OUTPUT_NORMAL,
        [CONF_OUTPUT_PUBSUB] = OUTPUT_PUBSUB,
    };

    for (unsigned i = 0; i < CONF_OUTPUT_CLASSES; i++) {
        const struct conf_output_limit *from =
            &conf->client_output_buffer_limit.of[i];
        struct output_limits *to = &net->output[classes[i]];

        if (i == CONF_OUTPUT_REPLICA) { /* links are no clients of a loop */
            continue;
        }
        to->hard_bytes = from->hard_bytes;
        to->soft_bytes = from->soft_bytes;
        to->soft_seconds = from->soft_seconds;
    }
}

/* maxmemory-clients in bytes; 0: no limit. A share of a small maxmemory still
 * lets one client send or fetch a filter. */
static uint64_t
clients_limit(const struct conf *conf)
{
    enum { LEAST_SHARE = 64 * 1024 * 1024 };
    uint64_t machine = machine_memory_bytes();
    uint64_t whole = conf->maxmemory > 0 && conf->maxmemory < machine
                         ? conf->maxmemory
                         : machine;
    uint64_t share;

    if (conf->maxmemory_clients >= 0) {
        return (uint64_t)conf->maxmemory_clients;
    }
    share = whole / 100 * (uint64_t)-conf->maxmemory_clients;
    return share > LEAST_SHARE ? share : LEAST_SHARE;
}

/* Copies what is read outside the gate's sections. Under the raised gate, or
 * before there are threads. */
static void
apply_conf(struct server *server)
{
    const struct conf *conf = &server->conf;
    struct net_limits *net = &server->net_limits;
    struct client_limits *client = &server->service.limits;

    log_set_level((enum log_level)conf->loglevel);
    apply_output_limits(conf, net);
    net->idle_seconds = (uint64_t)conf->timeout;
    server->usage.limit = clients_limit(conf);
    net->auth_seconds = (uint64_t)conf->auth_timeout;
    net->request_seconds = (uint64_t)conf->request_timeout;
    net->request_min_rate = conf->request_min_rate;
    net->keepalive_seconds = (uint64_t)conf->tcp_keepalive;
    net->maxclients = (uint64_t)conf->maxclients;
    net->reserved_clients = (uint64_t)conf->reserved_clients;
    net->local_only = conf->protected_mode && !auth_required(conf);
    client->args_max = (uint64_t)conf->proto_max_args;
    client->bulk_max = conf->proto_max_bulk_len;
    client->unauth_args_max = (uint64_t)conf->unauth_max_args;
    client->unauth_bulk_max = conf->unauth_max_bulk_len;
    client->query_max = conf->client_query_buffer_limit;
    client->multi_commands_max = (uint64_t)conf->multi_max_commands;
    client->multi_bytes_max = conf->multi_max_bytes;
    server->service.inbox_limit_bytes = conf->notice_buffer_limit;
    server->service.tracking_keys_max = (uint64_t)conf->tracking_table_max_keys;
    server->service.tracking_bytes_max = conf->tracking_table_max_bytes;
    observe_flag(&server->service, OBSERVED_EVENTS,
                 conf->notify_keyspace_events != 0);
    service_follow_conf(&server->service);
    slow_apply_conf(&server->service);
    if (server->persist != NULL) {
        persist_apply_conf(server->persist);
    }
    replication_apply_conf(server);
}

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

static void
log_changes(const struct conf_changes *changes)
{
    for (unsigned i = 0; i < CONF_OPTION_COUNT; i++) {
        if (changes->needs_restart[i]) {
            log_warn("server", "left an option until the next start",
                     "option=%s", conf_table[i].name);
        } else if (changes->changed[i]) {
            log_notice("server", "changed an option", "option=%s",
                       conf_table[i].name);
        }
    }
}

/* CONFIG SET, on any loop, with the gate raised. */
static void
on_conf_set(void *ctx, const struct conf_changes *changes)
{
    struct server *server = ctx;

    (void)!descriptors_fit(&server->conf, server->own_descriptors);
    apply_conf(server);
    log_changes(changes);
    data_poke(server);
}

static void
log_notes(const struct conf_args *args)
{
    struct slice notes = slice_of(args->notes.text), line;

    while (conf_next_note(&notes, &line)) {
        log_warn("server", "read the configuration", "note=\"%.*s\"",
                 (int)line.len, line.data);
    }
}

static void
log_overridden(const struct server *server, const struct conf_args *args)
{
    struct buf text = { 0 };

    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        if (args->overridden[i]) {
            text.len = 0;
            conf_get(&server->conf, &conf_table[i], &text);
            buf_printf(&text, "\" instead_of=\"");
            conf_get(&server->given, &conf_table[i], &text);
            log_notice("server",
                       CONF_REWRITTEN_NAME " overrides the configuration",
                       "option=%s value=\"%.*s\"", conf_table[i].name,
                       (int)text.len, text.data);
        }
    }
    buf_free(&text);
}

static void
reload(struct server *server)
{
    struct gate *gate = keyspace_gate(server->service.keyspace);
    struct conf_changes changes;
    struct conf_error error;
    struct conf_args args;
    struct conf fresh, given;
    enum mem_claim before = mem_set_claim(MEM_OWN);

    pending_flush(&server->loops[0]);
    (void)systemd_reloading();
    own_files_reopen_log(server->conf.logfile);
    if (conf_try_init(&fresh, &error) &&
        conf_load_args(&fresh, &given, server->argc, server->argv, &args,
                       &error)) {
        gate_raise(gate, 0);
        conf_take(&server->conf, &fresh, &changes);
        conf_fini(&server->given);
        server->given = given;
        (void)!descriptors_fit(&server->conf, server->own_descriptors);
        apply_conf(server);
        gate_lower(gate, 0);
        log_notes(&args);
        log_overridden(server, &args);
        log_changes(&changes);
        if (server->service.config_is_input) {
            log_warn("server", "did not read standard input again",
                     "reason=\"it can be read once, at the start\"");
        }
        log_notice("server", "reloaded the configuration", "%s", "");
    } else {
        log_error("server", "kept the old configuration", "reason=\"%s\"",
                  error.text);
    }
    conf_fini(&fresh);
    (void)mem_set_claim(before);
    (void)systemd_notify("READY=1");
}

/* ---- signals and timers, loop 0 ------------------------------------------ */

static void
close_handles(struct server *server)
{
    uv_handle_t *handles[] = {
        (uv_handle_t *)&server->sigterm,  (uv_handle_t *)&server->sigint,
        (uv_handle_t *)&server->sighup,   (uv_handle_t *)&server->sigchld,
        (uv_handle_t *)&server->reclaim,  (uv_handle_t *)&server->tick,
        (uv_handle_t *)&server->watchdog, (uv_handle_t *)&server->poke,
    };

    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        uv_close(handles[i], NULL);
    }
    replication_close_handles(server);
    /* One that comes late would kill the process at its end. */
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
}

/* No thread of persist wakes a loop after persist_halt. */
void
server_stop_loops(struct server *server)
{
    server->stopping = true;
    listeners_close(&server->listeners);
    replication_stop(server);
    persist_halt(server->persist);
    close_handles(server);
    for (unsigned i = 1; i < server->threads; i++) {
        loop_stop(&server->loops[i]);
    }
    loop_stop_here(&server->loops[0]);
}

static void
pause_writes(struct server *server, bool on)
{
    struct gate *gate = keyspace_gate(server->service.keyspace);

    gate_raise(gate, 0);
    if (on) {
        pause_begin(&server->service, PAUSE_FOR_END, UINT64_MAX, false);
    } else {
        pause_end(&server->service, PAUSE_FOR_END);
    }
    gate_lower(gate, 0);
}

/* Replicas get what they have not got yet, for a while: then one of them can
 * go on where we end. Nobody writes meanwhile; the tick asks again. */
static bool
waits_for_replicas(struct server *server)
{
    uint64_t now_ns = clock_mono_ns();
    unsigned flags = atomic_load(&server->shutdown_flags);

    if ((flags & SHUTDOWN_NOW) != 0 || server->conf.shutdown_timeout == 0 ||
        (server->stop_waits_until_ns > 0 &&
         now_ns >= server->stop_waits_until_ns)) {
        return false;
    }
    if (server->stop_waits_until_ns > 0) {
        return !replication_is_even(server);
    }
    pause_writes(server, true); /* first, so that nothing comes behind it */
    server->stop_waits_until_ns =
        now_ns + (uint64_t)server->conf.shutdown_timeout * SECOND_NS;
    if (replication_is_even(server)) {
        return false;
    }
    log_notice("server", "waits for replicas", "seconds=%lld",
               (long long)server->conf.shutdown_timeout);
    return true;
}

void
server_stop(struct server *server)
{
    bool by_command =
        (atomic_load(&server->shutdown_flags) & SHUTDOWN_BY_COMMAND) != 0;
    bool ended;

    if (server->stopping) {
        return;
    }
    pending_flush(&server->loops[0]); /* before the last snapshot, or the end */
    if (atomic_load(&server->service.loading)) {
        /* Nothing has changed yet, and the loader knows no way out. */
        listeners_close(&server->listeners);
        own_files_remove_pid(server->conf.pidfile);
        log_notice("server", "stopped while loading", "%s", "");
        _exit(EXIT_SUCCESS);
    }
    (void)systemd_notify("STOPPING=1");
    if (waits_for_replicas(server)) {
        return;
    }
    ended = data_end(server);
    if (server->stop_waits_until_ns > 0) {
        server->stop_waits_until_ns = 0;
        pause_writes(server, false); /* who waited is refused now, or served */
    }
    if (!ended) {
        if (!by_command) { /* a signal is not asked twice */
            server->stop_again_ns = clock_mono_ns() + STOP_AGAIN_NS;
        }
        log_error("server", "did not stop",
                  "reason=\"the data could not be "
                  "saved\"");
        (void)systemd_notify("READY=1");
        return;
    }
    server_stop_loops(server);
}

static void
on_stop_signal(uv_signal_t *handle, int number)
{
    log_notice("server", "stopping", "signal=%d", number);
    server_stop(handle->data);
}

static void
on_reload_signal(uv_signal_t *handle, int number)
{
    (void)number;
    reload(handle->data);
}

/* SHUTDOWN arrives on any loop; a signal finds its way to loop 0. */
static void
request_shutdown(void *ctx, unsigned flags)
{
    struct server *server = ctx;

    atomic_store(&server->shutdown_flags, flags | SHUTDOWN_BY_COMMAND);
    (void)kill(getpid(), SIGTERM);
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
on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    (void)systemd_notify("WATCHDOG=1");
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
    uint64_t watchdog_ms = systemd_watchdog_interval_ms();
    uv_loop_t *uv = &server->loops[0].uv;

    start_signal(server, &server->sigterm, on_stop_signal, SIGTERM);
    start_signal(server, &server->sigint, on_stop_signal, SIGINT);
    start_signal(server, &server->sighup, on_reload_signal, SIGHUP);
    data_start_handles(server);
    replication_start_handles(server);
    CHECK(uv_timer_init(uv, &server->reclaim) == 0);
    server->reclaim.data = server;
    CHECK(uv_timer_start(&server->reclaim, on_reclaim, RECLAIM_EVERY_MS, 0) ==
          0);
    CHECK(uv_timer_init(uv, &server->watchdog) == 0);
    if (watchdog_ms > 0) {
        CHECK(uv_timer_start(&server->watchdog, on_watchdog, 0, watchdog_ms) ==
              0);
    }
}

/* Signals that come before there is a handler wait for it. Threads started
 * meanwhile keep them blocked, so that they reach the main thread. */
static void
hold_signals(bool hold)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    CHECK(pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL) == 0);
}

/* ---- start and stop ------------------------------------------------------ */

static bool
open_sockets(struct server *server)
{
    const struct conf *conf = &server->conf;
    char reason[LISTENER_REASON_MAX];
    struct listen_options options = {
        .bind = conf->bind,
        .port = (unsigned)conf->port,
        .admin_bind = conf->admin_bind,
        .admin_port = (unsigned)conf->admin_port,
        .unix_path = conf->unixsocket,
        .unix_mode = conf->unixsocketperm,
        .backlog = (int)conf->tcp_backlog,
    };

    if (!listeners_open(&server->listeners, &options, reason)) {
        log_error("server", "not started", "reason=\"%s\"", reason);
        return false;
    }
    return true;
}

/* On the loop that reclaims: 0, by its timer. */
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
    service->acl_log = acl_log_new();
    service->auth_delay = auth_delay_new();
    service->conf_file = conf_file_new(&server->given, data_wake_loops, server);
    random_hex(service->run_id, sizeof(service->run_id) - 1);
    service->started_ms = clock_wall_ms();
    service->started_mono_ns = clock_mono_ns();
    service->executable = server->executable;
    service->config_file = server->config_file;
    service->wake_loops = data_wake_loops;
    service->shutdown = request_shutdown;
    service->conf_changed = on_conf_set;
    service->ctx = server;
    atomic_store(&service->loading, true);
    service->status = status_new();
    server->persist = data_new(server);
    service->persist = server->persist;
    server->replication = replication_new(server);
}

static void
free_service(struct server *server)
{
    struct service *service = &server->service;

    replication_free(server->replication);
    persist_free(server->persist);
    status_free(service->status);
    conf_file_free(service->conf_file);
    acl_log_free(service->acl_log);
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
    conf_fini(&server->conf);
    conf_fini(&server->given);
}

static void
init_loops(struct server *server)
{
    struct inbox_reader reader = observe_reader;

    server->loop_env = (struct loop_env){
        .limits = &server->net_limits,
        .handler = &gateway_handler,
        .released = journal_released(persist_journal(server->persist)),
        .gives_up = persist_gives_up(server->persist),
        .registry = server->service.registry,
        .usage = &server->usage,
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
}

bool
server_init(struct server *server, struct conf *conf, struct conf *given,
            const struct conf_args *args, int argc, char **argv)
{
    const char *cpu;

    hold_signals(true);
    (void)signal(SIGPIPE, SIG_IGN);
    memset(server, 0, sizeof(*server));
    server->conf = *conf;
    server->given = *given;
    server->argc = argc;
    server->argv = argv;
    server->threads = thread_count(conf);
    server->service.conf = &server->conf;
    server->own_descriptors = descriptors_own(&server->conf, server->threads);
    if (!descriptors_fit(&server->conf, server->own_descriptors)) {
        return false;
    }
    log_set_level((enum log_level)server->conf.loglevel);
    hash_seed_process();
    command_table_init(command_rows);
    cpu = bloom_select_cpu(false);
    init_service(server, args);
    apply_conf(server);
    if (!persist_open(server->persist) || !replication_open(server) ||
        !open_sockets(server)) {
        replication_close_file(server);
        free_service(server);
        return false;
    }
    own_files_write_pid(server->conf.pidfile);
    init_loops(server);
    persist_apply_conf(server->persist);
    server->service.started_bytes = mem_used();
    log_notice("server", "started",
               "version=%s pid=%d threads=%u port=%lld unixsocket=\"%s\" "
               "cpu=%s config=\"%s\"",
               BLOOMERY_VERSION, (int)getpid(), server->threads,
               (long long)server->conf.port, server->conf.unixsocket, cpu,
               server->config_file);
    log_notes(args);
    log_overridden(server, args);
    return true;
}

bool
server_run(struct server *server)
{
    start_handles(server);
    hold_signals(false);
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
    return !server->load_failed;
}

void
server_fini(struct server *server)
{
    conf_file_free(server->service.conf_file); /* its thread wakes the loops */
    server->service.conf_file = NULL;
    replication_close_file(server);
    for (unsigned i = 0; i < server->threads; i++) {
        loop_fini(&server->loops[i]);
        dispatch_free_worker(server->workers[i]);
    }
    mem_free(server->loops);
    mem_free(server->workers);
    free_service(server);
    systemd_fini();
}
