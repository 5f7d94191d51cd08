/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A table has a function for each section. Metrics are not listed here:
 * section_of gives the section of each, and a new counter appears among the
 * statistics without a change.
 */
#include "info/info.h"

#include "access/table.h"
#include "base/clock.h"
#include "base/longest.h"
#include "base/systemd.h"
#include "engine/dialect.h"
#include "engine/observe.h"
#include "info/info_cluster.h"
#include "info/info_commands.h"
#include "info/info_memory.h"
#include "info/info_persist.h"
#include "info/info_process.h"
#include "info/info_put.h"
#include "info/info_replication.h"
#include "measure/sampler.h"
#include "push/pubsub.h"
#include "push/tracking.h"

#include <bloomery_version.h>
#include <inttypes.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ---- helpers ------------------------------------------------------------- */

static enum info_section
section_of(enum metric metric)
{
    switch (metric) {
    case METRIC_CONNECTED_CLIENTS:
    case METRIC_MULTI_CLIENTS:
    case METRIC_WATCHING_CLIENTS:
    case METRIC_BLOCKED_CLIENTS:
    case METRIC_PUBSUB_CLIENTS:
    case METRIC_HELD_CLIENTS:
        return INFO_CLIENTS;
    case METRIC_LAZYFREED:
    case METRIC_LAZYFREE_PENDING:
    case METRIC_LAZYFREE_PENDING_BYTES:
    case METRIC_CLIENT_INPUT_BYTES:
    case METRIC_CLIENT_OUTPUT_BYTES:
    case METRIC_JOURNAL_QUEUED:
    case METRIC_REPL_BACKLOG:
        return INFO_MEMORY;
    case METRIC_BF_MEMORY:
    case METRIC_BF_OBJECTS:
    case METRIC_BF_FILTERS:
    case METRIC_BF_ITEMS:
    case METRIC_BF_CAPACITY:
        return INFO_BF_CORE;
    case METRIC_BF_DEFRAG_HITS:
    case METRIC_BF_DEFRAG_MISSES:
        return INFO_BF_DEFRAG;
    case METRIC_CLUSTER_MOVED:
    case METRIC_CLUSTER_ASK:
    case METRIC_CLUSTER_TRYAGAIN:
    case METRIC_CLUSTER_DOWN:
    case METRIC_CLUSTER_CROSSSLOT:
    case METRIC_CLUSTER_TRANSFERS:
    case METRIC_CLUSTER_TRANSFERS_FAILED:
    case METRIC_CLUSTER_TRANSFERRED_SLOTS:
    case METRIC_CLUSTER_TRANSFERRED_KEYS:
    case METRIC_CLUSTER_FORCED:
        return INFO_CLUSTER;
    case METRIC_MEM_USED:
        return INFO_SECTION_COUNT; /* info_memory has it */
    default:
        return INFO_STATS;
    }
}

static void
put_metrics(struct buf *text, enum info_section section)
{
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        if (section_of((enum metric)i) == section) {
            info_put_number(text, metric_table[i].name,
                            info_put_metric_value((enum metric)i));
        }
    }
}

/* ---- sections ------------------------------------------------------------ */

static void
write_tcp_listener(const char *name, const char *bind, int64_t port,
                   unsigned *count, struct buf *text)
{
    struct slice rest = slice_of(bind), word;

    if (port > 0) {
        buf_printf(text, "listener%u:name=%s", (*count)++, name);
        while (slice_next_word(&rest, &word)) {
            buf_printf(text, ",bind=%.*s", slice_shown(word), word.data);
        }
        buf_printf(text, ",port=%lld\r\n", (long long)port);
    }
}

/* Shows where clients can connect, as Valkey does. */
static void
write_listeners(const struct conf *conf, struct buf *text)
{
    unsigned count = 0;

    write_tcp_listener("tcp", conf->bind, conf->port, &count, text);
    if (conf->unixsocket[0] != '\0') {
        buf_printf(text, "listener%u:name=unix,bind=%s\r\n", count++,
                   conf->unixsocket);
    }
    write_tcp_listener("tls", conf->bind, conf->tls_port, &count, text);
}

static void
write_server(const struct service *service, struct buf *text)
{
    const char *mode = service->cluster != NULL ? "cluster" : "standalone";
    struct info_process process;
    struct utsname os;

    info_process_get(service, &process);
    if (dialect_is_redis(service)) {
        info_put_text(text, "redis_version", INFO_REDIS_VERSION);
    } else { /* the version of Redis that Valkey says it is compatible with */
        info_put_text(text, "redis_version", "7.2.4");
        info_put_text(text, "server_name", "valkey");
        info_put_text(text, "valkey_version", INFO_VALKEY_VERSION);
        info_put_text(text, "server_mode", mode);
    }
    info_put_text(text, "bloomery_version", BLOOMERY_VERSION);
    info_put_text(text, "redis_mode", mode);
    if (uname(&os) == 0) {
        buf_printf(text, "os:%.64s %.64s %.64s\r\n", os.sysname, os.release,
                   os.machine);
    }
    info_put_number(text, "arch_bits", sizeof(void *) * 8);
    info_put_text(text, "monotonic_clock", "POSIX clock_gettime");
    info_put_text(text, "multiplexing_api", "epoll");
    info_put_text(text, "atomicvar_api", "c11-builtin");
    info_put_number(text, "process_id", (uint64_t)getpid());
    info_put_text(text, "process_supervised",
                  systemd_is_used() ? "systemd" : "no");
    info_put_text(text, "run_id", service->run_id);
    info_put_number(text, "tcp_port",
                    (uint64_t)(service->conf->port > 0
                                   ? service->conf->port
                                   : service->conf->tls_port));
    info_put_number(text, "server_time_usec", clock_wall_us());
    info_put_number(text, "uptime_in_seconds", process.up_s);
    info_put_number(text, "uptime_in_days", process.up_s / 86400);
    info_put_text(text, "executable", service->executable);
    info_put_text(text, "config_file", service->config_file);
    info_put_number(text, "io_threads_active", service->threads > 1);
    info_put_number(text, "threads", service->threads);
    write_listeners(service->conf, text);
}

/* Shows every limit of clients: maxclients and the section of limits. */
static void
write_clients(const struct service *service, struct buf *text)
{
    put_metrics(text, INFO_CLIENTS);
    info_put_number(text, "cluster_connections", 0);
    info_put_number(text, "tracking_clients",
                    (observed_by(service) & OBSERVED_TRACKING) >> 8);
    for (unsigned i = 0; i < CONF_OPTION_COUNT; i++) {
        if (i == CONF_OPTION_maxclients ||
            strcmp(conf_table[i].section, "limits") == 0) {
            info_put_option(text, service->conf, &conf_table[i]);
        }
    }
}

static void
write_memory(const struct service *service, struct buf *text)
{
    info_memory_write(service, text);
    put_metrics(text, INFO_MEMORY);
}

static void
put_kbps(const struct service *service, struct buf *text, const char *name,
         enum sampler_rate rate)
{
    info_put_ratio(text, name,
                   sampler_per_second(service->sampler, rate) / 1024);
}

static void
put_rates(const struct service *service, struct buf *text)
{
    info_put_number(
        text, "instantaneous_ops_per_sec",
        (uint64_t)sampler_per_second(service->sampler, SAMPLER_COMMANDS));
    put_kbps(service, text, "instantaneous_input_kbps", SAMPLER_NET_INPUT);
    put_kbps(service, text, "instantaneous_output_kbps", SAMPLER_NET_OUTPUT);
    put_kbps(service, text, "instantaneous_input_repl_kbps",
             SAMPLER_NET_REPL_INPUT);
    put_kbps(service, text, "instantaneous_output_repl_kbps",
             SAMPLER_NET_REPL_OUTPUT);
}

static void
put_listeners(const struct service *service, struct buf *text)
{
    struct tracking_sums tracked = { 0 };
    uint64_t names[PUBSUB_KINDS] = { 0 };

    for (unsigned i = 0; service->pubsub != NULL && i < PUBSUB_KINDS; i++) {
        names[i] = pubsub_names(service->pubsub, (enum pubsub_kind)i);
    }
    if (service->tracking != NULL) {
        tracked = tracking_sum(service->tracking);
    }
    info_put_number(text, "pubsub_channels", names[PUBSUB_CHANNEL]);
    info_put_number(text, "pubsub_patterns", names[PUBSUB_PATTERN]);
    info_put_number(text, "pubsubshard_channels", names[PUBSUB_SHARD]);
    info_put_number(text, "tracking_total_keys", tracked.keys);
    info_put_number(text, "tracking_total_items", tracked.items);
    info_put_number(text, "tracking_total_prefixes", tracked.prefixes);
}

/* Shows zeros for figures that this server does not have: monitors read them.
 */
static void
put_undone(struct buf *text)
{
    static const char *const names[] = {
        "migrate_cached_sockets",
        "slave_expires_tracked_keys",
        "unexpected_error_replies",
    };

    info_put_zeros(text, names, sizeof(names) / sizeof(names[0]));
}

static void
put_defrag_time(const struct service *service, struct buf *text)
{
    uint64_t since_ns = atomic_load(&service->defrag_since_ns);

    info_put_number(text, "current_active_defrag_time",
                    since_ns > 0 ? (clock_mono_ns() - since_ns) / 1000000 : 0);
}

static void
put_longest(struct buf *text)
{
    struct longest_figure handler = longest_get(LONGEST_HANDLER);
    struct longest_figure lock = longest_get(LONGEST_LOCK);

    info_put_number(text, "longest_handler_usec", handler.ns / 1000);
    info_put_text(text, "longest_handler", handler.what);
    info_put_number(text, "longest_lock_usec", lock.ns / 1000);
    info_put_text(text, "longest_lock", lock.what);
}

static void
write_stats(const struct service *service, struct buf *text)
{
    put_metrics(text, INFO_STATS);
    info_put_number(text, "expire_cycle_cpu_milliseconds",
                    info_put_metric_value(METRIC_EXPIRE_US) / 1000);
    put_rates(service, text);
    put_defrag_time(service, text);
    put_longest(text);
    put_listeners(service, text);
    info_persist_write_forks(text);
    info_replication_write_syncs(service, text);
    put_undone(text);
}

static void
put_us(struct buf *text, const char *name, uint64_t us)
{
    buf_printf(text, "%s:%" PRIu64 ".%06" PRIu64 "\r\n", name, us / 1000000,
               us % 1000000);
}

static void
write_cpu(const struct service *service, struct buf *text)
{
    struct sampler_cpu main_thread = sampler_main_thread(service->sampler);
    struct info_process process;

    info_process_get(service, &process);
    put_us(text, "used_cpu_sys", process.system_us);
    put_us(text, "used_cpu_user", process.user_us);
    put_us(text, "used_cpu_sys_children", process.children_system_us);
    put_us(text, "used_cpu_user_children", process.children_user_us);
    put_us(text, "used_cpu_sys_main_thread", main_thread.system_us);
    put_us(text, "used_cpu_user_main_thread", main_thread.user_us);
}

static void
write_modules(const struct service *service, struct buf *text)
{
    (void)service;
    buf_printf(text,
               "module:name=%s,ver=%d,api=1,filters=0,usedby=[],using=[],"
               "options=[]\r\n",
               INFO_MODULE_NAME, INFO_MODULE_VERSION);
}

static void
write_cluster(const struct service *service, struct buf *text)
{
    info_cluster_write(service, text);
    if (service->cluster != NULL) {
        put_metrics(text, INFO_CLUSTER);
    }
}

static void
write_keyspace(const struct service *service, struct buf *text)
{
    for (uint32_t db = 0; db < (uint32_t)service->conf->databases; db++) {
        uint64_t keys = 0, expires = 0;

        keyspace_count(service->keyspace, db, &keys, &expires);
        if (keys > 0) {
            buf_printf(text,
                       "db%" PRIu32 ":keys=%" PRIu64 ",expires=%" PRIu64
                       ",avg_ttl=0\r\n",
                       db, keys, expires);
        }
    }
}

static void
write_bf_core(const struct service *service, struct buf *text)
{
    (void)service;
    put_metrics(text, INFO_BF_CORE);
}

static void
write_bf_defrag(const struct service *service, struct buf *text)
{
    (void)service;
    put_metrics(text, INFO_BF_DEFRAG);
}

/* ---- the table ----------------------------------------------------------- */

enum {
    IN_DEFAULT = 1 << 0,
    IN_ALL = 1 << 1,
    IN_EVERYTHING = 1 << 2,
    IN_MODULES = 1 << 3,
    IN_BF = 1 << 4,
    IN_CORE = IN_DEFAULT | IN_ALL | IN_EVERYTHING,
    IN_MODULE = IN_EVERYTHING | IN_MODULES | IN_BF
};

static void
write_tls(const struct service *service, struct buf *text)
{
    int64_t now_s = (int64_t)(clock_wall_ms() / 1000);
    struct tls_validity all[TLS_CERTIFICATE_COUNT] = { { .until_s = 0 } };

    if (service->tls != NULL) {
        tls_contexts_validity(service->tls, all);
    }
    for (unsigned i = 0; i < TLS_CERTIFICATE_COUNT; i++) {
        int64_t left_s = (int64_t)all[i].until_s - now_s;
        bool has = all[i].serial[0] != '\0';

        buf_printf(text, "tls_%s_cert_serial:%s\r\n", tls_certificate_name(i),
                   has ? all[i].serial : "none");
        buf_printf(text, "tls_%s_cert_expires_in_seconds:%" PRId64 "\r\n",
                   tls_certificate_name(i), has && left_s > 0 ? left_s : 0);
    }
}

static const struct {
    const char *name; /* as its heading shows it */
    unsigned in;
    void (*write)(const struct service *service, struct buf *text);
} sections[INFO_SECTION_COUNT] = {
    [INFO_SERVER] = { "Server", IN_CORE, write_server },
    [INFO_TLS] = { "TLS", IN_ALL | IN_EVERYTHING, write_tls },
    [INFO_CLIENTS] = { "Clients", IN_CORE, write_clients },
    [INFO_MEMORY] = { "Memory", IN_CORE, write_memory },
    [INFO_PERSISTENCE] = { "Persistence", IN_CORE, info_persist_write },
    [INFO_STATS] = { "Stats", IN_CORE, write_stats },
    [INFO_REPLICATION] = { "Replication", IN_CORE, info_replication_write },
    [INFO_CPU] = { "CPU", IN_CORE, write_cpu },
    [INFO_MODULES] = { "Modules", IN_CORE | IN_MODULES, write_modules },
    [INFO_COMMANDSTATS] = { "Commandstats", IN_ALL | IN_EVERYTHING,
                            info_commands_write },
    [INFO_ERRORSTATS] = { "Errorstats", IN_CORE, info_commands_write_errors },
    [INFO_LATENCYSTATS] = { "Latencystats", IN_ALL | IN_EVERYTHING,
                            info_commands_write_latency },
    [INFO_CLUSTER] = { "Cluster", IN_CORE, write_cluster },
    [INFO_KEYSPACE] = { "Keyspace", IN_CORE, write_keyspace },
    [INFO_BF_CORE] = { "bf_bloom_core_metrics", IN_MODULE, write_bf_core },
    [INFO_BF_DEFRAG] = { "bf_bloom_defrag_metrics", IN_MODULE,
                         write_bf_defrag },
};

static unsigned
group_of(struct slice name)
{
    static const struct {
        const char *name;
        unsigned in;
    } groups[] = {
        { "default", IN_DEFAULT },       { "all", IN_ALL },
        { "everything", IN_EVERYTHING }, { "modules", IN_MODULES },
        { INFO_MODULE_NAME, IN_BF },
    };

    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (slice_is_word(name, groups[i].name)) {
            return groups[i].in;
        }
    }
    return 0;
}

uint32_t
info_select(const struct slice *names, size_t count)
{
    uint32_t selected = 0;

    for (size_t n = 0; n < count || n == 0; n++) {
        struct slice name = count > 0 ? names[n] : slice_lit("default");
        unsigned group = group_of(name);

        for (unsigned i = 0; i < INFO_SECTION_COUNT; i++) {
            if ((sections[i].in & group) != 0 ||
                slice_is_word(name, sections[i].name)) {
                selected |= 1U << i;
            }
        }
    }
    return selected;
}

void
info_write(const struct service *service, uint32_t selected, struct buf *text)
{
    bool first = true;

    for (unsigned i = 0; i < INFO_SECTION_COUNT; i++) {
        if ((selected & 1U << i) == 0) {
            continue;
        }
        buf_printf(text, "%s# %s\r\n", first ? "" : "\r\n", sections[i].name);
        sections[i].write(service, text);
        first = false;
    }
}

void
info_reply_modules(struct reply *reply)
{
    reply_array(reply, 1);
    reply_map(reply, 4);
    reply_bulk_text(reply, "name");
    reply_bulk_text(reply, INFO_MODULE_NAME);
    reply_bulk_text(reply, "ver");
    reply_int(reply, INFO_MODULE_VERSION);
    reply_bulk_text(reply, "path");
    reply_bulk_text(reply, "");
    reply_bulk_text(reply, "args");
    reply_array(reply, 0);
}
