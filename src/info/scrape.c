/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A histogram has a bucket for every second doubling of the time, from 64 ns to
 * about a second: more would multiply the series of each command.
 */
#include "info/scrape.h"

#include "base/clock.h"
#include "base/longest.h"
#include "base/machine.h"
#include "base/num.h"
#include "engine/dialect.h"
#include "info/info_commands.h"
#include "info/info_memory.h"
#include "info/info_process.h"
#include "measure/slowlog.h"

#include <bloomery_version.h>
#include <inttypes.h>
#include <stdio.h>

enum { FIRST_BITS = 6, LAST_BITS = 30, BITS_STEP = 2 };

/* ---- the server ---------------------------------------------------------- */

static void
write_server(const struct service *service, struct expose *to)
{
    struct info_process process;

    info_process_get(service, &process);
    expose_family(to, "build_info", EXPOSE_GAUGE, "",
                  "Always 1. The labels have the version and the dialect.");
    expose_label(to, "version", slice_lit(BLOOMERY_VERSION));
    expose_more_label(to, "dialect",
                      slice_of(dialect_is_redis(service) ? "redis" : "valkey"));
    expose_count(to, 1);
    expose_family(to, "start_time", EXPOSE_GAUGE, "seconds",
                  "When the server started, in seconds since 1970.");
    expose_ns(to, service->started_ms * 1000000);
    expose_one(to, "threads", "", "Event loops.", service->threads);
    expose_one(to, "loading", "", "1 while the server loads its data.",
               atomic_load(&service->loading));
    expose_family(to, "cpu", EXPOSE_COUNTER, "seconds",
                  "Processor time of the process.");
    expose_label(to, "mode", slice_lit("user"));
    expose_ns(to, process.user_us * 1000);
    expose_label(to, "mode", slice_lit("system"));
    expose_ns(to, process.system_us * 1000);
    expose_one_ns(to, "longest_handler",
                  "Longest time of a command's handler since the last reset; 0 "
                  "below 0.0002.",
                  longest_get(LONGEST_HANDLER).ns);
    expose_one_ns(to, "longest_lock",
                  "Longest time for which a lock was held since the last "
                  "reset; 0 below 0.0002.",
                  longest_get(LONGEST_LOCK).ns);
    expose_one(to, "slowlog_entries", "", "Entries of the slow log.",
               slowlog_length(service->slowlog));
}

/* ---- commands ------------------------------------------------------------ */

static bool
was_used(const struct stats_sum *sum)
{
    return sum->calls > 0 || sum->rejected > 0 || sum->failed > 0;
}

enum figure { FIGURE_CALLS, FIGURE_NS, FIGURE_REJECTED, FIGURE_FAILED };

static void
write_figure(const struct service *service, struct expose *to,
             enum figure which)
{
    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        struct stats_sum sum = stats_sum_command(service->stats, id);
        const uint64_t figures[] = { [FIGURE_CALLS] = sum.calls,
                                     [FIGURE_NS] = sum.ns,
                                     [FIGURE_REJECTED] = sum.rejected,
                                     [FIGURE_FAILED] = sum.failed };

        if (!was_used(&sum)) {
            continue;
        }
        expose_label(to, "command",
                     slice_of(dialect_command_name(service, command_at(id))));
        if (which == FIGURE_NS) {
            expose_ns(to, sum.ns);
        } else {
            expose_count(to, figures[which]);
        }
    }
}

/* The sum covers all calls, and the buckets those that were timed: they differ
 * only after a change of latency-tracking. */
static void
write_histograms(const struct service *service, struct expose *to)
{
    struct stats_histogram histogram;

    expose_family(to, "command_duration", EXPOSE_HISTOGRAM, "seconds",
                  "How long calls took from their begin to their end. Commands "
                  "that run together share the time evenly.");
    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        if (!stats_sum_spread(service->stats, id, &histogram)) {
            continue;
        }
        expose_label(to, "command",
                     slice_of(dialect_command_name(service, command_at(id))));
        for (unsigned bits = FIRST_BITS; bits <= LAST_BITS; bits += BITS_STEP) {
            expose_bucket(to, stats_step_ns(bits),
                          stats_count_below(&histogram, bits));
        }
        expose_bucket(to, UINT64_MAX, histogram.count);
        expose_sum(to, stats_sum_command(service->stats, id).ns,
                   histogram.count);
    }
}

static void
put_error(void *ctx, const char *prefix, uint64_t count)
{
    struct expose *to = ctx;

    expose_label(to, "error", slice_of(prefix));
    expose_count(to, count);
}

static void
write_commands(const struct service *service, struct expose *to)
{
    static const struct {
        const char *name, *unit, *help;
    } families[] = {
        [FIGURE_CALLS] = { "command_calls", "", "Calls of a command." },
        [FIGURE_NS] = { "command_time", "seconds",
                        "Time that the calls of a command took together." },
        [FIGURE_REJECTED] = { "command_rejected_calls", "",
                              "Calls that were refused before they ran." },
        [FIGURE_FAILED] = { "command_failed_calls", "",
                            "Calls that ran and replied with an error." },
    };

    for (unsigned i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        expose_family(to, families[i].name, EXPOSE_COUNTER, families[i].unit,
                      families[i].help);
        write_figure(service, to, (enum figure)i);
    }
    write_histograms(service, to);
    expose_family(to, "errors", EXPOSE_COUNTER, "",
                  "Error replies by their first word.");
    info_commands_each_error(service, put_error, to);
}

/* ---- keys and memory ----------------------------------------------------- */

static void
label_database(struct expose *to, uint32_t db)
{
    char text[16];
    int len = snprintf(text, sizeof(text), "%" PRIu32, db);

    expose_label(to, "db", (struct slice){ text, (size_t)len });
}

static void
write_keys(const struct service *service, struct expose *to)
{
    uint32_t databases = (uint32_t)service->conf->databases;

    for (int which = 0; which < 2; which++) {
        expose_family(
            to, which == 0 ? "keys" : "keys_expiring", EXPOSE_GAUGE, "",
            which == 0 ? "Keys of a database; expired ones count until they "
                         "are removed."
                       : "Keys of a database that have a time to live.");
        for (uint32_t db = 0; db < databases; db++) {
            uint64_t keys = 0, expires = 0;

            keyspace_count(service->keyspace, db, &keys, &expires);
            if (keys > 0 || db == 0) {
                label_database(to, db);
                expose_count(to, which == 0 ? keys : expires);
            }
        }
    }
}

static void
write_memory(const struct service *service, struct expose *to)
{
    const struct conf *conf = service->conf;
    struct info_memory memory;

    info_memory_get(service, &memory);
    expose_one(to, "memory_resident", "bytes",
               "Memory of the process that is in RAM.", memory.resident);
    expose_one(to, "memory_peak", "bytes", "Highest used memory so far.",
               memory.peak);
    expose_one(to, "memory_max", "bytes", "The option maxmemory; 0: not set.",
               conf->maxmemory);
    expose_one(to, "memory_machine", "bytes",
               "Memory of the machine, or the limit of the control group.",
               machine_memory_bytes());
    expose_one(to, "memory_clients", "bytes", "Memory of all clients together.",
               memory.clients);
    expose_one(to, "memory_journal", "bytes",
               "Changes on their way to the journal.", memory.journal);
    expose_one(to, "memory_replicas", "bytes",
               "Changes that replicas have yet to take.", memory.replicas);
    if (memory.has_allocator) {
        expose_one(to, "allocator_allocated", "bytes",
                   "Bytes that the allocator has given out.",
                   memory.allocator.allocated);
        expose_one(to, "allocator_active", "bytes",
                   "Bytes of the pages that contain them.",
                   memory.allocator.active);
        expose_one(to, "allocator_resident", "bytes",
                   "Bytes of all pages of the allocator.",
                   memory.allocator.resident);
    }
    expose_one(to, "clients_max", "", "The option maxclients.",
               (uint64_t)conf->maxclients);
}

static void
write_certificates(const struct service *service, struct expose *to)
{
    struct tls_validity all[TLS_CERTIFICATE_COUNT];
    bool begun = false;

    if (service->tls == NULL) {
        return;
    }
    tls_contexts_validity(service->tls, all);
    for (unsigned i = 0; i < TLS_CERTIFICATE_COUNT; i++) {
        if (all[i].serial[0] == '\0') {
            continue;
        }
        if (!begun) {
            expose_family(to, "tls_certificate_expiry_timestamp", EXPOSE_GAUGE,
                          "seconds",
                          "Until when a certificate in use is valid; of "
                          "several authorities, the first that expires.");
            begun = true;
        }
        expose_label(to, "certificate", slice_of(tls_certificate_name(i)));
        expose_count(to, all[i].until_s);
    }
}

enum filter_figure { FILTER_ITEMS, FILTER_CAPACITY, FILTER_RATE };

static void
write_filter(struct expose *to, const struct ranking_filter *filter,
             enum filter_figure which)
{
    if (which == FILTER_RATE && filter->rate < 0) {
        return; /* nobody has looked at its bits yet */
    }
    label_database(to, filter->db);
    expose_more_label(to, "filter", ranking_name(filter));
    expose_more_label(to, "scaling", slice_of(filter->scaling ? "yes" : "no"));
    if (which == FILTER_RATE) {
        expose_number(to, filter->rate);
    } else {
        expose_count(to,
                     which == FILTER_ITEMS ? filter->items : filter->capacity);
    }
}

static void
write_filters(struct expose *to, const struct ranking_chosen *chosen)
{
    static const struct {
        const char *name, *help;
    } families[] = {
        [FILTER_ITEMS] = { "filter_items", "Items of a filter that "
                                           "metrics-filters chooses." },
        [FILTER_CAPACITY] = { "filter_capacity",
                              "Its capacity, of all layers." },
        [FILTER_RATE] = { "filter_error_rate",
                          "The share of absent items that it finds now." },
    };

    if (chosen == NULL || chosen->pattern[0] == '\0') {
        return;
    }
    expose_one(to, "filters_left_out", "",
               "Filters that match metrics-filters beyond the 1,000 that have "
               "metrics.",
               chosen->matching > chosen->count
                   ? chosen->matching - chosen->count
                   : 0);
    if (chosen->count == 0) {
        return;
    }
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        expose_family(to, families[i].name, EXPOSE_GAUGE, "", families[i].help);
        for (unsigned f = 0; f < chosen->count; f++) {
            write_filter(to, &chosen->filter[f], (enum filter_figure)i);
        }
    }
}

void
scrape_write(const struct service *service, const struct ranking_chosen *chosen,
             bool open, struct buf *text)
{
    struct expose to = { .text = text, .open = open };

    write_server(service, &to);
    expose_table(&to);
    write_keys(service, &to);
    write_filters(&to, chosen);
    write_memory(service, &to);
    write_certificates(service, &to);
    write_commands(service, &to);
    scrape_persistence(service, &to);
    scrape_replication(service, &to);
    scrape_cluster(service, &to);
    expose_end(&to);
}
