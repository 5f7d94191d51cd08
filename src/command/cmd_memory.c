/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MEMORY. The figures are those of INFO (info_memory.h), with the names and in
 * the order of Redis's STATS; what the server does not know is left out.
 */
#include "access/handlers.h"
#include "base/machine.h"
#include "base/mem.h"
#include "engine/request.h"
#include "info/info_memory.h"
#include "info/info_put.h"

enum { REPORT_BYTES_MAX = 1 << 20 };

/* ---- USAGE --------------------------------------------------------------- */

/* Parses SAMPLES, which has no effect: a filter knows its size. */
static enum err
parse_samples(struct args *args)
{
    while (args_left(args) > 0) {
        if (args_left(args) < 2 || !args_word(args, "SAMPLES")) {
            return ERR_SYNTAX;
        }
        if (args_i64(args) < 0) {
            return ERR_SYNTAX;
        }
    }
    return args_end(args);
}

enum err
cmd_memory_usage(struct request *req)
{
    struct entry *entry;
    enum err err;

    (void)args_bytes(&req->args); /* the key */
    err = parse_samples(&req->args);
    if (err != OK) {
        return err;
    }
    entry = keyspace_find(req->keyspace, &req->key, req->now_ms);
    if (entry == NULL) {
        reply_null(req->reply);
    } else {
        reply_int(req->reply, (int64_t)(keyspace_entry_bytes(entry) +
                                        bloom_size(&entry->bloom)));
    }
    return OK;
}

/* ---- STATS --------------------------------------------------------------- */

/* The figures that were replied so far. */
struct figures {
    struct reply *reply;
    size_t count;
};

static void
add_figure(struct figures *figures, const char *name, uint64_t number)
{
    reply_named_int(figures->reply, name, number);
    figures->count++;
}

static void
add_double(struct figures *figures, const char *name, double fraction)
{
    reply_named_double(figures->reply, name, fraction);
    figures->count++;
}

static void
add_use(struct figures *figures, const struct info_memory *memory)
{
    uint64_t grown =
        memory->used > memory->started ? memory->used - memory->started : 0;

    add_figure(figures, "peak.allocated", memory->peak);
    add_figure(figures, "total.allocated", memory->used);
    add_figure(figures, "startup.allocated", memory->started);
    add_figure(figures, "replication.backlog", memory->backlog);
    add_figure(figures, "clients.slaves", memory->replicas);
    add_figure(figures, "clients.normal", memory->clients);
    add_figure(figures, "cluster.links", 0);
    add_figure(figures, "aof.buffer", memory->journal);
    add_figure(figures, "lua.caches", 0);
    add_figure(figures, "functions.caches", 0);
    add_figure(figures, "overhead.total", memory->used - memory->dataset);
    add_figure(figures, "keys.count", memory->keys);
    add_figure(figures, "keys.bytes-per-key",
               memory->keys > 0 ? grown / memory->keys : 0);
    add_figure(figures, "dataset.bytes", memory->dataset);
    add_double(figures, "dataset.percentage",
               info_memory_percent(memory->dataset, grown));
    add_double(figures, "peak.percentage",
               info_memory_percent(memory->used, memory->peak));
}

static void
add_allocator(struct figures *figures, const struct info_memory *memory)
{
    const struct allocator_figures *a = &memory->allocator;

    if (memory->has_allocator) {
        add_figure(figures, "allocator.allocated", a->allocated);
        add_figure(figures, "allocator.active", a->active);
        add_figure(figures, "allocator.resident", a->resident);
        add_double(figures, "allocator-fragmentation.ratio",
                   info_memory_ratio(a->active, a->allocated));
        add_figure(figures, "allocator-fragmentation.bytes",
                   a->active - a->allocated);
        add_double(figures, "allocator-rss.ratio",
                   info_memory_ratio(a->resident, a->active));
        add_figure(figures, "allocator-rss.bytes", a->resident - a->active);
    }
    if (memory->resident > 0) {
        add_double(figures, "fragmentation",
                   info_memory_ratio(memory->resident, memory->used));
        add_figure(figures, "fragmentation.bytes",
                   memory->resident - memory->used);
    }
}

enum err
cmd_memory_stats(struct request *req)
{
    struct figures figures = { .reply = req->reply };
    size_t place = reply_begin(req->reply);
    struct info_memory memory;

    info_memory_get(req->service, &memory);
    add_use(&figures, &memory);
    add_allocator(&figures, &memory);
    reply_map_end(req->reply, place, figures.count);
    return OK;
}

/* ---- the others ---------------------------------------------------------- */

static void
append_bytes(struct buf *text, uint64_t bytes)
{
    static const char *const units[] = { "bytes", "KB", "MB", "GB", "TB" };
    unsigned unit;
    double value = info_put_scaled(bytes, 4, &unit);

    buf_printf(text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

static void
append_concern(struct buf *text, unsigned *count, const char *concern)
{
    buf_printf(text, "%s%s", *count == 0 ? ". To look at: " : "; ", concern);
    (*count)++;
}

/* Appends what the operator should look at: figures above these thresholds. */
static void
append_concerns(const struct service *service, const struct info_memory *memory,
                struct buf *text)
{
    const uint64_t small = (uint64_t)64 << 20;
    uint64_t limit = service->conf->maxmemory;
    uint64_t machine = machine_memory_bytes();
    unsigned count = 0;

    if (limit > 0 && memory->used > limit / 10 * 9) {
        append_concern(text, &count, "more than 90% of maxmemory is used");
    }
    if (limit > machine || (limit == 0 && memory->used > machine / 10 * 8)) {
        append_concern(text, &count,
                       limit > 0 ? "maxmemory is above what the machine has"
                                 : "more than 80% of what the machine has is "
                                   "used, and maxmemory sets no limit");
    }
    if (memory->resident > memory->used + small &&
        memory->resident > memory->used / 10 * 14) {
        append_concern(text, &count,
                       "the process takes much more than it uses, which "
                       "MEMORY PURGE may give back");
    }
    if (memory->clients > small && memory->clients > memory->used / 10) {
        append_concern(text, &count,
                       "clients that do not read, or send large requests, "
                       "have more than a tenth of it");
    }
    if (memory->journal > small / 2) {
        append_concern(text, &count,
                       "the journal's disk does not keep up with the writes");
    }
    buf_printf(text, count == 0 ? ". Nothing stands out.\n" : ".\n");
}

enum err
cmd_memory_doctor(struct request *req)
{
    struct info_memory memory;
    struct buf text = { 0 };

    info_memory_get(req->service, &memory);
    append_bytes(&text, memory.used);
    buf_printf(&text, " are used (at most ");
    append_bytes(&text, memory.peak);
    buf_printf(&text, "), of which ");
    append_bytes(&text, memory.dataset);
    buf_printf(&text, " by the filters of %llu keys; ",
               (unsigned long long)memory.keys);
    append_bytes(&text, memory.resident);
    buf_printf(&text, " are resident");
    append_concerns(req->service, &memory, &text);
    reply_text(req->reply, &text);
    return OK;
}

enum err
cmd_memory_malloc_stats(struct request *req)
{
    struct buf text = { 0 };

    if (!allocator_report(&text, REPORT_BYTES_MAX)) {
        buf_printf(&text, "Stats not supported for the current allocator");
    }
    reply_text(req->reply, &text);
    return OK;
}

/* Replies OK in any case: an allocator that cannot purge has nothing to return.
 */
enum err
cmd_memory_purge(struct request *req)
{
    (void)allocator_purge();
    reply_ok(req->reply);
    return OK;
}
