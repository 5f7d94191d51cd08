/* SPDX-License-Identifier: BSD-3-Clause
 *
 * jemalloc's two functions are weak symbols: NULL where jemalloc is not linked.
 * It reads the variable malloc_conf at its start.
 */
#include "base/allocator.h"

#include <stdint.h>
#include <stdio.h>

extern int mallctl(const char *name, void *old, size_t *old_len, void *new,
                   size_t new_len) __attribute__((weak));
extern void malloc_stats_print(void (*write)(void *ctx, const char *text),
                               void *ctx, const char *options)
    __attribute__((weak));

/* By itself jemalloc returns unused pages only while it is called, so after the
 * last DEL it would keep them all. One background thread returns them in any
 * case, and spares the loops that work: within 5 seconds instead of 10, since
 * FLUSHALL of a million keys takes some seconds itself. A new thread has no
 * cache until it enables one (base/thread.h). MALLOC_CONF in the environment
 * wins over this. */
extern const char *malloc_conf;
const char *malloc_conf =
    "background_thread:true,max_background_threads:1,dirty_decay_ms:5000,"
    "tcache:false";

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

/* The version without the commit that follows it: 5.3.0-0-g54eaed... */
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
