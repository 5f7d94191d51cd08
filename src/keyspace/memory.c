/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An allocation is refused before it is made: the kernel grants more memory
 * than it has, and a large filter touches its memory only as it fills. So all
 * memory that was granted counts, resident or not.
 */
#include "keyspace/memory.h"

#include "base/huge.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/reserve.h"
#include "keyspace/expire.h"
#include "keyspace/sparse.h"

#include <stdatomic.h>

enum {
    SLACK_MIN = 64 * 1024,
    GRANT_BYTES = 256 * 1024,     /* what a thread may allocate until it looks
                                     again */
    GRANT_FROM_BYTES = 128 << 20, /* free bytes that a grant needs */
};

/* What a thread may still allocate under these limits. Since all threads write
 * the counters of memory all the time, reading their sums waits for other
 * processors' caches. */
struct grant {
    uint64_t max, machine; /* limits */
    size_t left;
};

/* Bytes of filters that reapers are freeing now: no longer pending, but perhaps
 * still in use. Only reapers write it. */
static _Atomic int64_t bytes_being_freed;

/* Returns the bytes in use without the changes that wait for the disk or are
 * kept for replicas: evicting a key does not free them, but adds a change. Both
 * are read before mem_used(): bytes that are freed in between are subtracted
 * twice. In the other order they would count as used, which may cost a key. */
static uint64_t
used_without_queues(void)
{
    int64_t queued =
        metric_sum(METRIC_JOURNAL_QUEUED) + metric_sum(METRIC_REPL_BACKLOG);
    uint64_t used = mem_used();

    if (queued <= 0) {
        return used;
    }
    return used > (uint64_t)queued ? used - (uint64_t)queued : 0;
}

/* free_now: whether filters that are being freed count as free, even if their
 * bytes are not in use any more. */
static bool
is_over(uint64_t limit_bytes, bool free_now)
{
    uint64_t used;
    int64_t pending;

    if (mem_used() <= limit_bytes) {
        return false;
    }
    /* In the order in which bytes pass through them; before used, as above. */
    pending = metric_sum(METRIC_LAZYFREE_PENDING_BYTES);
    pending += free_now ? atomic_load(&bytes_being_freed) : 0;
    used = used_without_queues();
    return used > limit_bytes &&
           (pending <= 0 || used - limit_bytes > (uint64_t)pending);
}

bool
keyspace_is_over(uint64_t maxmemory_bytes)
{
    return is_over(maxmemory_bytes, false);
}

static bool
fits_in(uint64_t limit_bytes, uint64_t used, size_t bytes)
{
    return used <= limit_bytes && bytes <= limit_bytes - used;
}

/* Returns how far above the limit an allocation may begin: a filter takes
 * several of them, and other threads allocate at the same time. */
static uint64_t
slack_of(uint64_t max)
{
    return max / 32 > SLACK_MIN ? max / 32 : SLACK_MIN;
}

/* Returns whether the limits allow so many more bytes; the reserve counts as
 * used. */
static bool
fits_now(const struct keyspace_memory *memory, uint64_t machine, size_t bytes)
{
    uint64_t max = memory->maxmemory_bytes;

    if (max > 0 && memory->evicts) {
        /* Eviction has made room for the command: a filter that the reaper has
         * begun to free since must not be missing from what is free. */
        if (bytes > max || is_over(max + slack_of(max), true)) {
            return false;
        }
    } else if (max > 0 && !fits_in(max, used_without_queues(), bytes)) {
        return false;
    }
    return fits_in(machine, mem_used() + reserve_free(), bytes);
}

/* Returns whether both limits are far away. */
static bool
is_roomy(uint64_t max, uint64_t machine)
{
    uint64_t used = mem_used() + reserve_free();

    return (max == 0 || fits_in(max, used, GRANT_FROM_BYTES)) &&
           fits_in(machine, used, GRANT_FROM_BYTES);
}

/* Far from the limits, a thread reads the sums only once for many allocations.
 */
static bool
fits(const struct keyspace_memory *memory, size_t bytes)
{
    static _Thread_local struct grant grant;
    uint64_t max = memory->maxmemory_bytes;
    uint64_t machine = machine_memory_bytes();

    if (max == 0 && memory->shares) {
        machine = machine_share_bytes(machine);
    }
    if (bytes <= grant.left && grant.max == max && grant.machine == machine) {
        grant.left -= bytes;
        return true;
    }
    grant.left = 0;
    if (!fits_now(memory, machine, bytes)) {
        return false;
    }
    if (bytes < GRANT_BYTES && is_roomy(max, machine)) {
        grant = (struct grant){ max, machine, GRANT_BYTES - bytes };
    }
    return true;
}

/* Allocates without touching the reserve: no filter may take from it. */
static void *
filled(void *(*alloc)(size_t bytes), size_t bytes)
{
    enum mem_claim before = mem_set_claim(MEM_FILL);
    void *ptr = alloc(bytes);

    (void)mem_set_claim(before);
    return ptr;
}

static void *
env_alloc(void *ctx, size_t bytes)
{
    return fits(ctx, bytes) ? filled(mem_try_alloc, bytes) : NULL;
}

static void *
env_alloc_lines(void *ctx, size_t bytes)
{
    void *lines = fits(ctx, bytes) ? filled(mem_try_lines, bytes) : NULL;

    if (lines != NULL && bytes >= HUGE_PAGE_BYTES) {
        sparse_watch(lines, bytes);
    }
    return lines;
}

static void
env_free(void *ctx, void *ptr, size_t bytes)
{
    (void)ctx;
    (void)bytes;
    mem_free(ptr);
}

static void
env_free_lines(void *ctx, void *ptr, size_t bytes)
{
    (void)ctx;
    if (bytes >= HUGE_PAGE_BYTES) {
        sparse_forget(ptr);
    }
    mem_free_lines(ptr, bytes);
}

struct bloom_env
keyspace_env(const struct keyspace_memory *ctx, uint64_t size_limit_bytes)
{
    /* Our functions only read it; struct bloom_env has no const. */
    const union {
        const struct keyspace_memory *in;
        void *out;
    } memory = { ctx };

    return (struct bloom_env){
        .alloc = env_alloc,
        .free = env_free,
        .alloc_lines = env_alloc_lines,
        .free_lines = env_free_lines,
        .ctx = memory.out,
        .size_limit_bytes = size_limit_bytes,
    };
}

/* Returns the number of items as the gauges count it. */
static int64_t
counted(uint64_t items)
{
    return (int64_t)(items < KEYSPACE_COUNTED_MAX ? items
                                                  : KEYSPACE_COUNTED_MAX);
}

void
keyspace_account(const struct bloom_info *before,
                 const struct bloom_info *after)
{
    metric_add(METRIC_BF_MEMORY,
               (int64_t)(after->size_bytes - before->size_bytes));
    metric_add(METRIC_BF_FILTERS,
               (int64_t)after->layers - (int64_t)before->layers);
    metric_add(METRIC_BF_ITEMS, counted(after->items) - counted(before->items));
    metric_add(METRIC_BF_CAPACITY,
               counted(after->capacity) - counted(before->capacity));
}

/* Adds a filter to the counts, or takes one away. */
static void
count_filter(const struct bloom *bloom, int64_t sign)
{
    metric_add(METRIC_BF_MEMORY, sign * (int64_t)bloom_size(bloom));
    metric_add(METRIC_BF_FILTERS, sign * bloom->count);
    metric_add(METRIC_BF_ITEMS, sign * counted(bloom_items(bloom)));
    metric_add(METRIC_BF_CAPACITY, sign * counted(bloom_capacity(bloom)));
    metric_add(METRIC_BF_OBJECTS, sign);
}

void
keyspace_account_new(const struct bloom *bloom)
{
    count_filter(bloom, 1);
}

void
keyspace_free_entry(struct entry *entry)
{
    const struct bloom_env env = keyspace_env(NULL, 0); /* frees need no ctx */

    count_filter(&entry->bloom, -1);
    bloom_fini(&entry->bloom, &env);
    mem_free(entry);
}

int64_t
keyspace_free_pending(struct entry *entry)
{
    int64_t bytes = (int64_t)bloom_size(&entry->bloom);

    atomic_fetch_add(&bytes_being_freed, bytes);
    metric_add(METRIC_LAZYFREE_PENDING_BYTES, -bytes);
    keyspace_free_entry(entry);
    atomic_fetch_sub(&bytes_being_freed, bytes);
    return bytes;
}

size_t
keyspace_entry_bytes(const struct entry *entry)
{
    return entry_bytes(entry_name(entry).len) - sizeof(entry->bloom) +
           sizeof(uint64_t) + /* a slot of the table */
           (entry->heap_index != EXPIRE_NONE ? sizeof(struct expire_item) : 0);
}
