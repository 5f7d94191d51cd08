/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Filters from 2 MiB on have mappings of their own, which the allocator does
 * not count. So the allocator's figures are about the rest, and the difference
 * between resident and allocated memory is not overhead and not shown as such.
 */
#include "info/info_memory.h"

#include "base/machine.h"
#include "base/mem.h"
#include "base/reserve.h"
#include "info/info_put.h"
#include "info/info_replication.h"
#include "journal/journal.h"
#include "measure/sampler.h"
#include "net/usage.h"
#include "persist/persist.h"

#include <unistd.h>

static uint64_t
queued_bytes(const struct service *service)
{
    struct journal_status status;

    if (service->persist == NULL) {
        return 0;
    }
    journal_get_status(persist_journal(service->persist), &status);
    return status.queue_bytes;
}

void
info_memory_get(const struct service *service, struct info_memory *ret_memory)
{
    uint64_t used = mem_used();
    struct info_replication_memory replication;

    info_replication_memory(service, &replication);
    *ret_memory = (struct info_memory){
        .used = used,
        .peak = sampler_peak_bytes(service->sampler, used),
        .started = service->started_bytes,
        .resident = machine_resident_bytes(),
        .dataset = info_put_metric_value(METRIC_BF_MEMORY),
        .clients =
            service->usage != NULL ? atomic_load(&service->usage->total) : 0,
        .journal = queued_bytes(service),
        .backlog = replication.backlog,
        .replicas = replication.replicas,
        .keys = keyspace_count_keys(service->keyspace),
    };
    if (ret_memory->dataset > used) { /* it was counted a moment later than
                                         `used` */
        ret_memory->dataset = used;
    }
    ret_memory->has_allocator = allocator_get_figures(&ret_memory->allocator);
}

double
info_memory_percent(uint64_t part, uint64_t whole)
{
    return info_memory_ratio(part, whole) * 100;
}

double
info_memory_ratio(uint64_t a, uint64_t b)
{
    return b > 0 ? (double)a / (double)b : 0;
}

static void
put_percent(struct buf *text, const char *name, double percent)
{
    buf_printf(text, "%s:%.2f%%\r\n", name, percent);
}

static void
put_used(struct buf *text, const struct info_memory *memory)
{
    uint64_t grown =
        memory->used > memory->started ? memory->used - memory->started : 0;

    info_put_bytes(text, "used_memory", memory->used);
    if (memory->resident > 0) {
        info_put_bytes(text, "used_memory_rss", memory->resident);
    }
    info_put_bytes(text, "used_memory_peak", memory->peak);
    put_percent(text, "used_memory_peak_perc",
                info_memory_percent(memory->used, memory->peak));
    info_put_number(text, "used_memory_overhead",
                    memory->used - memory->dataset);
    info_put_number(text, "used_memory_startup", memory->started);
    info_put_number(text, "used_memory_dataset", memory->dataset);
    put_percent(text, "used_memory_dataset_perc",
                info_memory_percent(memory->dataset, grown));
}

static void
put_fragmentation(struct buf *text, const struct info_memory *memory)
{
    const struct allocator_figures *a = &memory->allocator;

    if (memory->has_allocator) {
        info_put_number(text, "allocator_allocated", a->allocated);
        info_put_number(text, "allocator_active", a->active);
        info_put_number(text, "allocator_resident", a->resident);
        info_put_ratio(text, "allocator_frag_ratio",
                       info_memory_ratio(a->active, a->allocated));
        info_put_signed(text, "allocator_frag_bytes",
                        (int64_t)(a->active - a->allocated));
        info_put_ratio(text, "allocator_rss_ratio",
                       info_memory_ratio(a->resident, a->active));
        info_put_signed(text, "allocator_rss_bytes",
                        (int64_t)(a->resident - a->active));
    }
    if (memory->resident > 0) {
        info_put_ratio(text, "mem_fragmentation_ratio",
                       info_memory_ratio(memory->resident, memory->used));
        info_put_signed(text, "mem_fragmentation_bytes",
                        (int64_t)(memory->resident - memory->used));
    }
}

/* Shows zeros for things that take memory in Redis and do not exist in this
 * server. */
static void
put_absent(struct buf *text)
{
    static const char *const numbers[] = {
        "used_memory_lua",          "used_memory_vm_eval",
        "used_memory_scripts_eval", "number_of_cached_scripts",
        "number_of_functions",      "number_of_libraries",
        "used_memory_vm_functions", "used_memory_vm_total",
        "used_memory_functions",    "used_memory_scripts",
        "mem_cluster_links",
    };

    info_put_zeros(text, numbers, sizeof(numbers) / sizeof(numbers[0]));
    info_put_human(text, "used_memory_lua", 0);
    info_put_human(text, "used_memory_vm_total", 0);
    info_put_human(text, "used_memory_scripts", 0);
}

void
info_memory_write(const struct service *service, struct buf *text)
{
    const struct conf *conf = service->conf;
    struct info_memory memory;
    uint64_t total =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    info_memory_get(service, &memory);
    put_used(text, &memory);
    put_fragmentation(text, &memory);
    info_put_number(text, "active_defrag_running",
                    atomic_load(&service->defrag_percent));
    info_put_bytes(text, "total_system_memory", total);
    info_put_bytes(text, "memory_of_machine_or_cgroup", machine_memory_bytes());
    info_put_bytes(text, "maxmemory", conf->maxmemory);
    info_put_option(text, conf, &conf_table[CONF_OPTION_maxmemory_policy]);
    info_put_option(text, conf, &conf_table[CONF_OPTION_bf_memory_usage_limit]);
    info_put_number(text, "mem_total_replication_buffers",
                    memory.backlog + memory.replicas);
    info_put_number(text, "mem_clients_slaves", memory.replicas);
    info_put_number(text, "mem_clients_normal", memory.clients);
    info_put_number(text, "mem_aof_buffer", memory.journal);
    info_put_number(text, "mem_reserve_used", reserve_used());
    info_put_number(text, "mem_reserve_peak", reserve_peak());
    put_absent(text);
    buf_append_slice(text, slice_lit("mem_allocator:"));
    allocator_append_name(text);
    buf_append(text, "\r\n", 2);
}
