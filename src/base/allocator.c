/* SPDX-License-Identifier: BSD-3-Clause
 *
 * jemalloc's functions are weak symbols: NULL where jemalloc is not linked.
 * It reads the variable malloc_conf at its start.
 */
#include "base/allocator.h"

#include "base/reserve.h"

#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

extern int mallctl(const char *name, void *old, size_t *old_len, void *new,
                   size_t new_len) __attribute__((weak));
extern void malloc_stats_print(void (*write)(void *ctx, const char *text),
                               void *ctx, const char *options)
    __attribute__((weak));
extern int mallctlnametomib(const char *name, size_t *mib, size_t *mib_len)
    __attribute__((weak));
extern int mallctlbymib(const size_t *mib, size_t mib_len, void *old,
                        size_t *old_len, void *new, size_t new_len)
    __attribute__((weak));
extern void *mallocx(size_t bytes, int flags) __attribute__((weak));
extern void dallocx(void *ptr, int flags) __attribute__((weak));

/* By itself jemalloc returns unused pages only while it is called, so after the
 * last DEL it would keep them all. One background thread returns them in any
 * case, and spares the loops that work. It returns them within 5 seconds
 * instead of 10, since FLUSHALL of a million keys itself takes some seconds. A
 * new thread has no cache until it enables one (base/thread.h). Huge pages are
 * for large layers, which ask for them themselves: where the kernel gave them
 * to small blocks too, a fresh server had 28 MB of them, and a small cgroup was
 * filled by memory that nobody had counted. MALLOC_CONF in the environment wins
 * over this. */
extern const char *malloc_conf;
const char *malloc_conf =
    "background_thread:true,max_background_threads:1,dirty_decay_ms:5000,"
    "tcache:false,thp:never";

enum { ALL_ARENAS = 4096 }; /* MALLCTL_ARENAS_ALL */

static bool
read_size(const char *name, size_t *ret_value)
{
    size_t len = sizeof(*ret_value);

    return mallctl(name, ret_value, &len, NULL, 0) == 0;
}

bool
allocator_get_figures(struct allocator_figures *ret_figures)
{
    struct allocator_figures figures;
    uint64_t epoch = 1; /* any value refreshes the figures */

    if (mallctl == NULL ||
        mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch)) != 0 ||
        !read_size("stats.allocated", &figures.allocated) ||
        !read_size("stats.active", &figures.active) ||
        !read_size("stats.resident", &figures.resident)) {
        return false;
    }
    *ret_figures = figures;
    return true;
}

/* Leaves out the commit that follows the version: 5.3.0-0-g54eaed... */
void
allocator_append_name(struct buf *text)
{
    const char *version = NULL;
    size_t len = sizeof(version);

    if (mallctl != NULL && mallctl("version", &version, &len, NULL, 0) == 0) {
        buf_printf(text, "jemalloc-%.*s", (int)strcspn(version, "-"), version);
    } else {
        buf_append_slice(text, slice_lit("libc"));
    }
}

bool
allocator_purge(void)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "arena.%d.purge", ALL_ARENAS);
    return mallctl != NULL && mallctl(name, NULL, NULL, NULL, 0) == 0;
}

void
allocator_empty_cache(void)
{
    if (mallctl != NULL) {
        (void)mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
    }
}

/* ---- moving blocks ------------------------------------------------------- */

/* What jemalloc says about a block: experimental.utilization.query. A slab is
 * some pages with blocks of one size, and a bin has all slabs of that size of
 * some threads. */
struct utilization {
    void *current; /* the slab that new blocks come from */
    size_t slab_free, slab_blocks, slab_bytes;
    size_t bin_free, bin_blocks;
};

enum {
    QUERY_LEVELS = 3,
    NO_CACHE = 1 << 8 /* MALLOCX_TCACHE_NONE: a cache would return blocks of the
                         slabs that are to become free */
};

static size_t query[QUERY_LEVELS]; /* written once */
static bool can_query;
static pthread_once_t query_once = PTHREAD_ONCE_INIT;

static void
find_query(void)
{
    size_t levels = QUERY_LEVELS;

    can_query = mallctlnametomib != NULL && mallctlbymib != NULL &&
                mallocx != NULL && dallocx != NULL &&
                mallctlnametomib("experimental.utilization.query", query,
                                 &levels) == 0 &&
                levels == QUERY_LEVELS;
}

/* Blocks move from slabs that are used at most an eighth more than the average
 * of their bin. Without that eighth nothing would move where all slabs are used
 * alike. A full slab stays, and so does the one that new blocks come from. A
 * block outside of slabs stays, since no others lie beside it. The block must
 * be jemalloc's: for another address the query may crash. */
static bool
is_sparse(void *block)
{
    struct utilization now;
    size_t len = sizeof(now);

    (void)pthread_once(&query_once, find_query);
    if (!can_query || mallctlbymib(query, QUERY_LEVELS, &now, &len, &block,
                                   sizeof(block)) != 0) {
        return false;
    }
    return now.slab_blocks > 1 && now.slab_free > 0 &&
           ((uintptr_t)block < (uintptr_t)now.current ||
            (uintptr_t)block >= (uintptr_t)now.current + now.slab_bytes) &&
           (double)(now.slab_blocks - now.slab_free) * (double)now.bin_blocks <=
               1.125 * (double)now.slab_blocks *
                   (double)(now.bin_blocks - now.bin_free);
}

/* The copy has the block's usable size, so what mem_used() counts stays. */
void *
allocator_move(void *block, size_t align)
{
    size_t bytes;
    void *moved;

    if (reserve_owns(block) || !is_sparse(block)) {
        return NULL;
    }
    bytes = malloc_usable_size(block);
    moved = mallocx(bytes, NO_CACHE | __builtin_ctzll(align));
    if (moved != NULL) {
        memcpy(moved, block, bytes);
        dallocx(block, NO_CACHE);
    }
    return moved;
}

/* ---- the report ---------------------------------------------------------- */

struct report {
    struct buf *text;
    size_t left;
};

static void
append_report(void *ctx, const char *text)
{
    struct report *report = ctx;
    size_t len = strlen(text);

    if (len > report->left) {
        len = report->left;
    }
    buf_append(report->text, text, len);
    report->left -= len;
}

bool
allocator_report(struct buf *text, size_t limit_bytes)
{
    struct report report = { text, limit_bytes };

    if (malloc_stats_print == NULL) {
        return false;
    }
    malloc_stats_print(append_report, &report, NULL);
    return true;
}
