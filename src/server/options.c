/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Most options are copied, under the raised gate, to where the threads read
 * them.
 */
#include "server/options.h"

#include "access/users.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/systemd.h"
#include "engine/observe.h"
#include "engine/slow.h"
#include "keyspace/gate.h"
#include "net/pending.h"
#include "server/descriptors.h"
#include "server/own_files.h"
#include "server/own_tls.h"
#include "server/replication.h"
#include "server/server_state.h"
#include "server/wake.h"
#include "sidecar/sidecar_mode.h"

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

        if (i == CONF_OUTPUT_REPLICA) { /* links to replicas: replication.c */
            continue;
        }
        to->hard_bytes = from->hard_bytes;
        to->soft_bytes = from->soft_bytes;
        to->soft_seconds = from->soft_seconds;
    }
}

/* Returns maxmemory-clients in bytes; 0: no limit. A percentage of a small
 * maxmemory still allows one client to send or fetch a filter. */
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

/* Applies protected mode, which lasts while clients need no password. */
static void
apply_protection(struct server *server)
{
    server->net_limits.local_only =
        server->conf.protected_mode &&
        server->service.users->standard->rules.nopass;
}

void
options_users_changed(void *ctx)
{
    struct server *server = ctx;

    apply_protection(server);
    inboxes_wake(server->service.inboxes);
}

void
options_apply(struct server *server)
{
    const struct conf *conf = &server->conf;
    struct net_limits *net = &server->net_limits;
    struct client_limits *client = &server->service.limits;

    log_set_level((enum log_level)conf->loglevel);
    log_set_format((enum log_format)conf->log_format);
    apply_output_limits(conf, net);
    net->idle_seconds = (uint64_t)conf->timeout;
    server->usage.limit = clients_limit(conf);
    net->auth_seconds = (uint64_t)conf->auth_timeout;
    net->request_seconds = (uint64_t)conf->request_timeout;
    net->request_min_rate = conf->request_min_rate;
    net->keepalive_seconds = (uint64_t)conf->tcp_keepalive;
    net->maxclients = (uint64_t)conf->maxclients;
    net->reserved_clients = (uint64_t)conf->reserved_clients;
    net->metrics_seconds = (uint64_t)conf->metrics_timeout;
    net->metrics_clients = (uint64_t)conf->metrics_max_clients;
    client->args_max = (uint64_t)conf->proto_max_args;
    client->bulk_max = conf->proto_max_bulk_len;
    client->unauth_args_max = (uint64_t)conf->unauth_max_args;
    client->unauth_bulk_max = conf->unauth_max_bulk_len;
    client->query_max = conf->client_query_buffer_limit;
    client->multi_commands_max = (uint64_t)conf->multi_max_commands;
    client->multi_bytes_max = conf->multi_max_bytes;
    server->service.inbox_limit_bytes = conf->notice_buffer_limit;
    server->service.feed_gather_ns =
        (uint64_t)conf->bf_subscribe_gather * 1000000;
    server->service.tracking_keys_max = (uint64_t)conf->tracking_table_max_keys;
    server->service.tracking_bytes_max = conf->tracking_table_max_bytes;
    observe_flag(&server->service, OBSERVED_EVENTS,
                 conf->notify_keyspace_events != 0);
    service_follow_conf(&server->service);
    apply_protection(server);
    slow_apply_conf(&server->service);
    if (server->persist != NULL) {
        persist_apply_conf(server->persist);
    }
    replication_apply_conf(server);
    sidecar_mode_apply_conf(server->sidecar);
}

bool
options_allow(void *ctx, const struct conf *conf,
              const struct conf_changes *changes,
              char ret_reason[TLS_REASON_MAX])
{
    return sidecar_mode_allows(conf, ret_reason, TLS_REASON_MAX) &&
           own_tls_change(ctx, conf, changes, ret_reason);
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

void
options_changed(void *ctx, const struct conf_changes *changes)
{
    struct server *server = ctx;

    (void)!descriptors_fit(&server->conf, server->own_descriptors);
    options_apply(server);
    log_changes(changes);
    wake_persist(server);
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

void
options_log_notes(const struct server *server, const struct conf_args *args)
{
    struct slice notes = slice_of(args->notes.text), line;

    while (conf_next_note(&notes, &line)) {
        log_warn("server", "read the configuration", "note=\"%.*s\"",
                 (int)line.len, line.data);
    }
    log_overridden(server, args);
}

void
options_reload(struct server *server)
{
    struct gate *gate = keyspace_gate(server->service.keyspace);
    struct conf_changes changes;
    struct conf_error error;
    struct conf_args args;
    struct conf fresh, given;
    char reason[TLS_REASON_MAX];
    enum mem_claim before = mem_set_claim(MEM_OWN);

    pending_flush(&server->loops[0]);
    (void)systemd_reloading();
    own_files_reopen_log(server->conf.logfile);
    if (!conf_try_init(&fresh, &error) ||
        !conf_args_load(&fresh, &given, server->argc, server->argv, &args,
                        &error)) {
        log_error("server", "kept the old configuration", "reason=\"%s\"",
                  error.text);
    } else if (!sidecar_mode_allows(&fresh, reason, sizeof(reason)) ||
               !own_tls_load(server, &fresh, reason)) {
        conf_fini(&given);
        log_error("server", "kept the old configuration and certificates",
                  "reason=\"%s\"", reason);
    } else {
        gate_raise(gate, 0);
        conf_take(&server->conf, &fresh, &changes);
        conf_fini(&server->given);
        server->given = given;
        (void)!descriptors_fit(&server->conf, server->own_descriptors);
        options_apply(server);
        gate_lower(gate, 0);
        options_log_notes(server, &args);
        log_changes(&changes);
        own_files_warn_of_modes(&server->conf);
        if (server->service.config_is_input) {
            log_warn("server", "did not read standard input again",
                     "reason=\"it can be read once, at the start\"");
        }
        log_notice("server", "reloaded the configuration", "%s", "");
    }
    conf_fini(&fresh);
    replication_read_secrets(server);
    (void)mem_set_claim(before);
    (void)systemd_notify("READY=1");
}
