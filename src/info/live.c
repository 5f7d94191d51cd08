/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The linker makes an object file of status.html (Makefile), so that the source
 * of the page is HTML, and not a C string.
 */
#include "info/live.h"

#include "base/clock.h"
#include "base/machine.h"
#include "engine/dialect.h"
#include "info/info_cluster.h"
#include "info/info_memory.h"
#include "info/info_persist.h"
#include "info/info_process.h"
#include "info/info_put.h"
#include "info/json.h"
#include "info/links.h"
#include "persist/persist_info.h"

#include <bloomery_version.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum {
    BUCKETS_A_GROUP = 8 /* of the 32 buckets for each doubling of the time */
};

extern const char status_html_begin[], status_html_end[];

struct slice
live_page(void)
{
    return (struct slice){ status_html_begin,
                           (size_t)(status_html_end - status_html_begin) };
}

/* ---- the server ---------------------------------------------------------- */

static void
put_metric(struct json *to, const char *name, enum metric metric)
{
    json_count(to, name, info_put_metric_value(metric));
}

static void
put_server(const struct service *service, struct json *to,
           const struct persist_info *persist)
{
    struct info_process process;
    char host[HOST_NAME_MAX + 1];

    info_process_get(service, &process);
    if (gethostname(host, sizeof(host)) == 0) {
        host[HOST_NAME_MAX] = '\0';
        json_text(to, "host", slice_of(host));
    }
    json_count(to, "port",
               (uint64_t)(service->conf->port > 0 ? service->conf->port
                                                  : service->conf->tls_port));
    json_text(to, "version", slice_lit(BLOOMERY_VERSION));
    json_text(to, "dialect",
              slice_of(dialect_is_redis(service) ? "redis" : "valkey"));
    json_count(to, "mono_us", clock_mono_ns() / 1000);
    json_count(to, "uptime_s", process.up_s);
    json_count(to, "threads", service->threads);
    json_bool(to, "loading", atomic_load(&service->loading));
    json_number(to, "loading_percent", persist->loading_percent);
    json_count(to, "cpu_us", process.user_us + process.system_us);
}

static void
put_totals(struct json *to)
{
    static const struct {
        const char *name;
        enum metric metric;
    } totals[] = {
        { "commands", METRIC_COMMANDS },
        { "errors", METRIC_ERROR_REPLIES },
        { "connections", METRIC_CONNECTIONS },
        { "rejected", METRIC_REJECTED_CONNECTIONS },
        { "in_bytes", METRIC_NET_INPUT },
        { "out_bytes", METRIC_NET_OUTPUT },
        { "hits", METRIC_KEYSPACE_HITS },
        { "misses", METRIC_KEYSPACE_MISSES },
        { "expired", METRIC_EXPIRED_KEYS },
        { "evicted", METRIC_EVICTED_KEYS },
    };

    json_open(to, "totals", '{');
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
        put_metric(to, totals[i].name, totals[i].metric);
    }
    json_close(to, '}');
}

static void
put_clients(const struct service *service, struct json *to)
{
    json_open(to, "clients", '{');
    put_metric(to, "connected", METRIC_CONNECTED_CLIENTS);
    json_count(to, "max", (uint64_t)service->conf->maxclients);
    put_metric(to, "blocked", METRIC_BLOCKED_CLIENTS);
    put_metric(to, "held", METRIC_HELD_CLIENTS);
    json_close(to, '}');
}

static void
put_memory(const struct service *service, struct json *to)
{
    struct info_memory memory;

    info_memory_get(service, &memory);
    json_open(to, "memory", '{');
    json_count(to, "used", memory.used);
    json_count(to, "peak", memory.peak);
    json_count(to, "resident", memory.resident);
    json_count(to, "filters", memory.dataset);
    json_count(to, "clients", memory.clients);
    json_count(to, "journal", memory.journal);
    json_count(to, "backlog", memory.backlog);
    json_count(to, "max", service->conf->maxmemory);
    json_count(to, "machine", machine_memory_bytes());
    json_close(to, '}');
    json_open(to, "filters", '{');
    json_count(to, "keys", memory.keys);
    put_metric(to, "objects", METRIC_BF_OBJECTS);
    put_metric(to, "layers", METRIC_BF_FILTERS);
    put_metric(to, "items", METRIC_BF_ITEMS);
    put_metric(to, "capacity", METRIC_BF_CAPACITY);
    put_metric(to, "bytes", METRIC_BF_MEMORY);
    json_close(to, '}');
}

/* ---- commands ------------------------------------------------------------ */

static void
put_commands(const struct service *service, struct json *to)
{
    json_open(to, "commands", '[');
    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        struct stats_sum sum = stats_sum_command(service->stats, id);

        if (sum.calls == 0 && sum.rejected == 0) {
            continue;
        }
        json_open(to, NULL, '{');
        json_text(to, "name",
                  slice_of(dialect_command_name(service, command_at(id))));
        json_count(to, "calls", sum.calls);
        json_count(to, "us", sum.ns / 1000);
        json_count(to, "errors", sum.failed + sum.rejected);
        json_close(to, '}');
    }
    json_close(to, ']');
}

/* Appends pairs of a time and a count. The count is the number of calls, of all
 * commands, that took at most this time, but longer than the pair before. */
static void
put_latency(const struct service *service, struct json *to)
{
    struct stats_histogram all;

    (void)stats_sum_spreads(service->stats, &all);
    json_open(to, "latency_ns", '[');
    for (unsigned b = 0; b < STATS_BUCKETS; b += BUCKETS_A_GROUP) {
        uint64_t count = 0;

        for (unsigned i = 0; i < BUCKETS_A_GROUP; i++) {
            count += all.bucket[b + i];
        }
        if (count > 0) {
            json_open(to, NULL, '[');
            json_count(to, NULL, stats_bucket_end_ns(b + BUCKETS_A_GROUP - 1));
            json_count(to, NULL, count);
            json_close(to, ']');
        }
    }
    json_close(to, ']');
}

static void
put_time(struct json *to, uint64_t ns)
{
    if (ns > 0) {
        json_count(to, NULL, ns);
    } else {
        json_null(to, NULL);
    }
}

/* Appends three arrays, the oldest point first; a point without figures is
 * null. */
static void
put_trend(struct json *to, const struct trend *trend)
{
    json_open(to, "trend", '{');
    json_count(to, "every_s", TREND_EVERY_S);
    json_count(to, "points", TREND_POINTS);
    json_open(to, "ops", '[');
    for (unsigned i = 0; i < trend->count; i++) {
        double per_second = trend_at(trend, i)->per_second;

        if (per_second < 0) {
            json_null(to, NULL);
        } else {
            json_number(to, NULL, per_second);
        }
    }
    json_close(to, ']');
    json_open(to, "p50_ns", '[');
    for (unsigned i = 0; i < trend->count; i++) {
        put_time(to, trend_at(trend, i)->p50_ns);
    }
    json_close(to, ']');
    json_open(to, "p99_ns", '[');
    for (unsigned i = 0; i < trend->count; i++) {
        put_time(to, trend_at(trend, i)->p99_ns);
    }
    json_close(to, ']');
    json_close(to, '}');
}

/* ---- persistence and replication ----------------------------------------- */

static void
put_error(struct json *to, const char *name, int error)
{
    json_text(to, name, slice_of(error != 0 ? strerror(error) : ""));
}

static void
put_persistence(struct json *to, const struct persist_info *info)
{
    const struct journal_status *journal = &info->journal;
    uint64_t now_s = clock_wall_ms() / 1000;

    json_open(to, "persistence", '{');
    json_text(to, "journal", slice_of(info_persist_journal_state(journal)));
    put_error(to, "journal_error", journal->faulted ? journal->error : 0);
    put_error(to, "rewrite_error", info->last_rewrite_error);
    put_error(to, "save_error", info->last_save_error);
    json_bool(to, "misconf", info->misconf);
    json_count(to, "unsynced_us", info_persist_unsynced_ns(journal) / 1000);
    json_count(to, "syncs", journal->syncs);
    json_count(to, "fsync_last_us", journal->sync_ns_last / 1000);
    json_count(to, "fsync_max_us", journal->sync_ns_max / 1000);
    json_count(to, "journal_bytes", info->journal_bytes);
    json_bool(to, "rewriting", info->rewriting);
    json_bool(to, "rewrite_ok", info->last_rewrite_ok);
    json_bool(to, "saving", info->saving);
    json_bool(to, "save_ok", info->last_save_ok);
    json_count(to, "saves", info->saves);
    json_count(to, "save_age_s",
               now_s > info->last_save_s ? now_s - info->last_save_s : 0);
    json_count(to, "changes", info->changes);
    json_close(to, '}');
}

static void
put_replica(struct json *to, const struct status_replica *replica,
            uint64_t position)
{
    struct links_replica figures;

    links_measure(replica, position, &figures);
    json_open(to, NULL, '{');
    json_text(to, "name", slice_of(figures.name));
    json_bool(to, "online", figures.online);
    json_count(to, "lag_bytes", figures.lag_bytes);
    json_count(to, "silent_ms", figures.silent_ms);
    json_close(to, '}');
}

/* Appends the last trouble of this kind: a replica that was lost, or one that
 * could not load its snapshot. */
static void
put_trouble(const struct service *service, struct json *to, const char *name,
            enum status_trouble trouble)
{
    struct status_note note = { 0 };

    if (service->status != NULL) {
        status_get_note(service->status, trouble, &note);
    }
    if (note.reason[0] == '\0') {
        json_null(to, name);
        return;
    }
    json_open(to, name, '{');
    json_text(to, "replica", slice_of(note.replica));
    json_text(to, "reason", slice_of(note.reason));
    json_count(to, "ago_ms", clock_ms_since(note.mono_ms));
    json_close(to, '}');
}

static void
put_replication(const struct service *service, struct json *to,
                uint64_t position)
{
    char primary[ROLE_HOST_MAX + 16];
    struct links links;
    int len;

    if (links_get(service, &links) != OK) {
        to->text->failed = true;
        return;
    }
    json_open(to, "replication", '{');
    json_bool(to, "replica", service->role.replica);
    if (service->role.replica) {
        len = snprintf(primary, sizeof(primary), "%s:%u", service->role.host,
                       service->role.port);
        json_text(to, "primary", (struct slice){ primary, (size_t)len });
        json_bool(to, "up", links.figures.link == STATUS_CONNECTED);
        json_bool(to, "syncing", links.figures.link == STATUS_SYNC);
        json_text(to, "reason", slice_of(links.figures.reason));
        json_count(to, "silent_ms",
                   clock_ms_since(links.figures.heard_mono_ms));
    }
    json_count(to, "position", position);
    json_bool(to, "behind", service_is_behind(service));
    put_trouble(service, to, "lost", STATUS_LOST);
    put_trouble(service, to, "refused", STATUS_REFUSED);
    json_open(to, "replicas", '[');
    for (size_t i = 0; i < links.count; i++) {
        put_replica(to, &links.replicas[i], position);
    }
    json_close(to, ']');
    json_close(to, '}');
    links_free(&links);
}

/* ---- the cluster --------------------------------------------------------- */

static void
put_lease(struct json *to, const struct info_cluster *figures)
{
    json_bool(to, "up", figures->neighbour_up);
    json_count(to, "lease_ms", figures->lease_ms);
    json_count(to, "lease_left_ms", figures->lease_left_ms);
    json_count(to, "leases_lost", figures->leases_lost);
}

static void
put_slots(struct json *to, const struct info_cluster *figures,
          const struct cluster_view *view)
{
    char map[INFO_CLUSTER_PARTS + 1];
    struct buf silent = { 0 };

    info_cluster_map(view, map);
    info_cluster_silent(view, &silent);
    json_bool(to, "ok", figures->ok);
    json_bool(to, "primary", figures->primary);
    json_count(to, "epoch", figures->current_epoch);
    json_count(to, "nodes", figures->nodes);
    json_count(to, "assigned", figures->assigned);
    json_text(to, "map", slice_of(map));
    json_text(to, "silent", buf_slice(&silent));
    buf_free(&silent);
    json_open(to, "slots", '{');
    for (unsigned i = 0; i < SLOT_STATES; i++) {
        json_count(to, info_cluster_state_name((enum slot_state)i),
                   figures->slots[i]);
    }
    json_close(to, '}');
}

static void
put_transfers(struct json *to, const struct slot_transfers *transfers)
{
    json_open(to, "transfers", '{');
    json_count(to, "count", transfers->count);
    if (transfers->count > 0) {
        json_text(to, "state", slice_of(transfers->state));
        json_text(to, "source", slice_of(transfers->source));
        json_count(to, "slots", transfers->slots);
        json_count(to, "keys", transfers->keys);
        json_count(to, "bytes", transfers->bytes);
        json_count(to, "lag_bytes", transfers->lag_bytes);
        json_count(to, "age_ms", transfers->age_ms);
    }
    put_metric(to, "done", METRIC_CLUSTER_TRANSFERS);
    put_metric(to, "failed", METRIC_CLUSTER_TRANSFERS_FAILED);
    json_close(to, '}');
}

/* Appends the cluster; nothing without sidecar-of. */
static void
put_cluster(const struct service *service, struct json *to)
{
    struct info_cluster figures;

    if (!info_cluster_get(service, &figures)) {
        return;
    }
    json_open(to, "cluster", '{');
    json_text(to, "neighbour", slice_of(service->conf->sidecar_of));
    put_lease(to, &figures);
    if (figures.known) {
        put_slots(to, &figures, service->cluster->view);
    }
    put_transfers(to, &figures.transfers);
    put_metric(to, "moved", METRIC_CLUSTER_MOVED);
    put_metric(to, "ask", METRIC_CLUSTER_ASK);
    put_metric(to, "tryagain", METRIC_CLUSTER_TRYAGAIN);
    put_metric(to, "down", METRIC_CLUSTER_DOWN);
    json_close(to, '}');
}

/* ---- the ranking -------------------------------------------------------- */

static void
put_board(struct json *to, const char *name, const struct ranking_board *board,
          bool names)
{
    json_open(to, name, '[');
    for (unsigned i = 0; i < board->count; i++) {
        const struct ranking_filter *filter = &board->filter[i];

        json_open(to, NULL, '{');
        json_count(to, "number", filter->number);
        if (names) {
            json_text(to, "name", ranking_name(filter));
        }
        json_count(to, "db", filter->db);
        json_text(to, "kind", slice_of(bloom_kind_name(filter->kind)));
        json_count(to, "layers", filter->layers);
        json_count(to, "items", filter->items);
        json_count(to, "capacity", filter->capacity);
        json_count(to, "bytes", filter->bytes);
        json_number(to, "asked_rate", filter->asked_rate);
        if (filter->rate < 0) {
            json_null(to, "rate");
        } else {
            json_number(to, "rate", filter->rate);
        }
        json_close(to, '}');
    }
    json_close(to, ']');
}

static void
put_ranking(struct json *to, const struct ranking *ranking, bool names)
{
    json_open(to, "ranking", '{');
    json_bool(to, "names", names);
    json_count(to, "rounds", ranking->rounds);
    json_count(to, "seen", ranking->seen);
    json_count(to, "keys_a_step", RANKING_KEYS);
    put_board(to, "biggest", &ranking->biggest, names);
    put_board(to, "fullest", &ranking->fullest, names);
    json_close(to, '}');
}

void
live_write(const struct service *service, const struct live *live,
           struct buf *text)
{
    struct json to = { .text = text };
    struct persist_info persist;

    info_persist_get(service, &persist);
    json_open(&to, NULL, '{');
    put_server(service, &to, &persist);
    put_totals(&to);
    put_clients(service, &to);
    put_memory(service, &to);
    put_commands(service, &to);
    put_latency(service, &to);
    put_trend(&to, live->trend);
    put_persistence(&to, &persist);
    put_replication(service, &to, persist.journal.appended);
    put_cluster(service, &to);
    put_ranking(&to, live->ranking, live->names);
    json_close(&to, '}');
    buf_append(text, "\n", 1);
}
