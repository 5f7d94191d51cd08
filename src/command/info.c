/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One function a section, in a table with its name and where it belongs.
 * Metrics are walked, not listed: section_of says which section has which, and
 * a new counter shows up among the statistics by itself.
 */
#include "command/info.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "command/info_persist.h"
#include "command/table.h"

#include <inttypes.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

/* There when jemalloc is linked, else NULL. */
extern int mallctl(const char *name, void *old, size_t *old_len, void *new,
                   size_t new_len) __attribute__((weak));

/* ---- helpers ------------------------------------------------------------- */

static void
put(struct buf *text, const char *name, uint64_t value)
{
    buf_printf(text, "%s:%" PRIu64 "\r\n", name, value);
}

/* For texts of any length, which buf_printf is not made for. */
static void
put_text(struct buf *text, const char *name, const char *value)
{
    buf_append_slice(text, slice_of(name));
    buf_append(text, ":", 1);
    buf_append_slice(text, slice_of(value != NULL ? value : ""));
    buf_append(text, "\r\n", 2);
}

static void
put_human(struct buf *text, const char *name, uint64_t bytes)
{
    static const char units[] = "BKMGTPE";
    double value = (double)bytes;
    unsigned unit = 0;

    while (value >= 1024 && unit + 2 < sizeof(units)) {
        value /= 1024;
        unit++;
    }
    if (unit == 0) {
        buf_printf(text, "%s_human:%" PRIu64 "B\r\n", name, bytes);
    } else {
        buf_printf(text, "%s_human:%.2f%c\r\n", name, value, units[unit]);
    }
}

static void
put_bytes(struct buf *text, const char *name, uint64_t bytes)
{
    put(text, name, bytes);
    put_human(text, name, bytes);
}

/* An option, its name with _ for - and without what stands before a dot. */
static void
put_option(struct buf *text, const struct conf *conf,
           const struct conf_row *row)
{
    const char *dot = strchr(row->name, '.');
    const char *name = dot != NULL ? dot + 1 : row->name;

    for (; *name != '\0'; name++) {
        buf_append(text, *name == '-' ? "_" : name, 1);
    }
    buf_append(text, ":", 1);
    conf_get(conf, row, text);
    buf_append(text, "\r\n", 2);
}

static enum info_section
section_of(enum metric metric)
{
    switch (metric) {
    case METRIC_CONNECTED_CLIENTS:
    case METRIC_MULTI_CLIENTS:
    case METRIC_WATCHING_CLIENTS:
    case METRIC_BLOCKED_CLIENTS:
    case METRIC_HELD_CLIENTS:
        return INFO_CLIENTS;
    case METRIC_MEM_USED:
    case METRIC_LAZYFREED:
    case METRIC_LAZYFREE_PENDING:
    case METRIC_CLIENT_INPUT_BYTES:
    case METRIC_CLIENT_OUTPUT_BYTES:
        return INFO_MEMORY;
    case METRIC_BF_MEMORY:
    case METRIC_BF_OBJECTS:
    case METRIC_BF_FILTERS:
    case METRIC_BF_ITEMS:
    case METRIC_BF_CAPACITY:
        return INFO_BF_CORE;
    default:
        return INFO_STATS;
    }
}

/* A sum over slots that others write to meanwhile may dip below zero. */
static uint64_t
metric_value(enum metric metric)
{
    int64_t sum = metric_sum(metric);

    return sum > 0 ? (uint64_t)sum : 0;
}

static void
put_metrics(struct buf *text, enum info_section section)
{
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        if (section_of((enum metric)i) == section) {
            put(text, metric_table[i].name, metric_value((enum metric)i));
        }
    }
}

/* ---- sections ------------------------------------------------------------ */

static void
write_server(const struct service *service, struct buf *text)
{
    uint64_t up_s = (clock_mono_ns() - service->started_mono_ns) / 1000000000U;
    struct utsname os;

    put_text(text, "redis_version", INFO_REDIS_VERSION);
    put_text(text, "bloomery_version", BLOOMERY_VERSION);
    put_text(text, "redis_mode", "standalone");
    if (uname(&os) == 0) {
        buf_printf(text, "os:%.64s %.64s %.64s\r\n", os.sysname, os.release,
                   os.machine);
    }
    put(text, "arch_bits", sizeof(void *) * 8);
    put_text(text, "monotonic_clock", "POSIX clock_gettime");
    put_text(text, "multiplexing_api", "epoll");
    put(text, "process_id", (uint64_t)getpid());
    put_text(text, "run_id", service->run_id);
    put(text, "tcp_port", (uint64_t)service->conf->port);
    put(text, "server_time_usec", clock_wall_us());
    put(text, "uptime_in_seconds", up_s);
    put(text, "uptime_in_days", up_s / 86400);
    put_text(text, "executable", service->executable);
    put_text(text, "config_file", service->config_file);
    put(text, "threads", service->threads);
}

/* Every limit on what a client may do: maxclients and the section of limits. */
static void
write_clients(const struct service *service, struct buf *text)
{
    put_metrics(text, INFO_CLIENTS);
    put(text, "tracking_clients", 0);
    put(text, "pubsub_clients", 0);
    for (unsigned i = 0; i < CONF_OPTION_COUNT; i++) {
        if (i == CONF_OPTION_maxclients ||
            strcmp(conf_table[i].section, "limits") == 0) {
            put_option(text, service->conf, &conf_table[i]);
        }
    }
}

/* The version without the commit that follows it: 5.3.0-0-g54eaed... */
static void
write_allocator(struct buf *text)
{
    const char *version = NULL;
    size_t len = sizeof(version);

    if (mallctl != NULL && mallctl("version", &version, &len, NULL, 0) == 0) {
        buf_printf(text, "mem_allocator:jemalloc-%.*s\r\n",
                   (int)strcspn(version, "-"), version);
    } else {
        put_text(text, "mem_allocator", "libc");
    }
}

static void
write_memory(const struct service *service, struct buf *text)
{
    uint64_t used = metric_value(METRIC_MEM_USED);
    uint64_t resident = mem_resident_bytes();
    uint64_t total =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    put_metrics(text, INFO_MEMORY);
    put(text, "mem_clients_normal",
        metric_value(METRIC_CLIENT_INPUT_BYTES) +
            metric_value(METRIC_CLIENT_OUTPUT_BYTES));
    put_human(text, "used_memory", used);
    if (resident > 0) {
        put_bytes(text, "used_memory_rss", resident);
        if (used > 0) {
            buf_printf(text, "mem_fragmentation_ratio:%.2f\r\n",
                       (double)resident / (double)used);
        }
    }
    put_bytes(text, "total_system_memory", total);
    put_bytes(text, "memory_of_machine_or_cgroup", mem_machine_bytes());
    put_bytes(text, "maxmemory", service->conf->maxmemory);
    put_option(text, service->conf, &conf_table[CONF_OPTION_maxmemory_policy]);
    put_option(text, service->conf,
               &conf_table[CONF_OPTION_bf_memory_usage_limit]);
    write_allocator(text);
    put(text, "active_defrag_running", 0);
}

static void
write_stats(const struct service *service, struct buf *text)
{
    put_metrics(text, INFO_STATS);
    /* What this server does not do at all, under names that monitors ask. */
    put(text, "evicted_keys", 0);
    put(text, "evicted_clients", 0);
    put(text, "pubsub_channels", 0);
    put(text, "pubsub_patterns", 0);
    put(text, "sync_full", 0);
    put(text, "sync_partial_ok", 0);
    put(text, "sync_partial_err", 0);
    info_persist_write_forks(service, text);
}

/* A primary without replicas; its history begins and ends with this run. */
static void
write_replication(const struct service *service, struct buf *text)
{
    put_text(text, "role", "master");
    put(text, "connected_slaves", 0);
    put_text(text, "master_failover_state", "no-failover");
    put_text(text, "master_replid", service->run_id);
    put_text(text, "master_replid2",
             "0000000000000000000000000000000000000000");
    put(text, "master_repl_offset", 0);
    put_text(text, "second_repl_offset", "-1");
    put(text, "repl_backlog_active", 0);
}

static void
put_time(struct buf *text, const char *name, struct timeval time)
{
    buf_printf(text, "%s:%lld.%06ld\r\n", name, (long long)time.tv_sec,
               (long)time.tv_usec);
}

static void
write_cpu(const struct service *service, struct buf *text)
{
    struct rusage self, children;

    (void)service;
    if (getrusage(RUSAGE_SELF, &self) != 0 ||
        getrusage(RUSAGE_CHILDREN, &children) != 0) {
        return;
    }
    put_time(text, "used_cpu_sys", self.ru_stime);
    put_time(text, "used_cpu_user", self.ru_utime);
    put_time(text, "used_cpu_sys_children", children.ru_stime);
    put_time(text, "used_cpu_user_children", children.ru_utime);
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
write_commandstats(const struct service *service, struct buf *text)
{
    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        struct stats_sum sum = stats_sum_command(service->stats, id);
        double usec = (double)sum.ns / 1000;

        if (sum.calls == 0 && sum.rejected == 0 && sum.failed == 0) {
            continue;
        }
        buf_printf(text,
                   "cmdstat_%s:calls=%" PRIu64 ",usec=%" PRIu64
                   ",usec_per_call=%.2f,rejected_calls=%" PRIu64
                   ",failed_calls=%" PRIu64 "\r\n",
                   command_table[id].name, sum.calls, sum.ns / 1000,
                   sum.calls > 0 ? usec / (double)sum.calls : 0, sum.rejected,
                   sum.failed);
    }
}

/* Errors are told apart by their first word, as clients do. */
static void
write_errorstats(const struct service *service, struct buf *text)
{
    for (unsigned i = 1; i < ERR_COUNT; i++) {
        const char *prefix = err_prefix((enum err)i);
        uint64_t sum = 0;
        bool seen = prefix[0] == '\0';

        for (unsigned j = 1; j < i && !seen; j++) {
            seen = strcmp(err_prefix((enum err)j), prefix) == 0;
        }
        for (unsigned j = i; j < ERR_COUNT && !seen; j++) {
            if (strcmp(err_prefix((enum err)j), prefix) == 0) {
                sum += stats_sum_error(service->stats, (enum err)j);
            }
        }
        if (sum > 0) {
            buf_printf(text, "errorstat_%s:count=%" PRIu64 "\r\n", prefix, sum);
        }
    }
}

static void
write_cluster(const struct service *service, struct buf *text)
{
    (void)service;
    put(text, "cluster_enabled", 0);
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

/* There is no defragmentation, so that it has neither hit nor missed. */
static void
write_bf_defrag(const struct service *service, struct buf *text)
{
    (void)service;
    put(text, "bf_bloom_defrag_hits", 0);
    put(text, "bf_bloom_defrag_misses", 0);
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

static const struct {
    const char *name; /* as its heading shows it */
    unsigned in;
    void (*write)(const struct service *service, struct buf *text);
} sections[INFO_SECTION_COUNT] = {
    [INFO_SERVER] = { "Server", IN_CORE, write_server },
    [INFO_CLIENTS] = { "Clients", IN_CORE, write_clients },
    [INFO_MEMORY] = { "Memory", IN_CORE, write_memory },
    [INFO_PERSISTENCE] = { "Persistence", IN_CORE, info_persist_write },
    [INFO_STATS] = { "Stats", IN_CORE, write_stats },
    [INFO_REPLICATION] = { "Replication", IN_CORE, write_replication },
    [INFO_CPU] = { "CPU", IN_CORE, write_cpu },
    [INFO_MODULES] = { "Modules", IN_CORE | IN_MODULES, write_modules },
    [INFO_COMMANDSTATS] = { "Commandstats", IN_ALL | IN_EVERYTHING,
                            write_commandstats },
    [INFO_ERRORSTATS] = { "Errorstats", IN_CORE, write_errorstats },
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
