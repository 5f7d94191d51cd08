/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counting wrappers over the C library's allocator (jemalloc in the server),
 * and mappings for large filters.
 */
#include "base/mem.h"

#include "base/err.h"
#include "base/huge.h"
#include "base/metrics.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE_ALIGN = 64 };

static _Thread_local unsigned fail_countdown;
static _Thread_local bool fail_fired;

static bool
fault(void)
{
    if (__builtin_expect(fail_countdown == 0, 1)) {
        return false;
    }
    fail_countdown--;
    if (fail_countdown == 0) {
        fail_fired = true;
        return true;
    }
    return false;
}

static void *
counted(void *ptr)
{
    if (ptr != NULL) {
        metric_add(METRIC_MEM_USED, (int64_t)malloc_usable_size(ptr));
    }
    return ptr;
}

void *
mem_try_alloc(size_t bytes)
{
    return fault() ? NULL : counted(malloc(bytes > 0 ? bytes : 1));
}

void *
mem_try_zalloc(size_t bytes)
{
    return fault() ? NULL : counted(calloc(1, bytes > 0 ? bytes : 1));
}

void *
mem_alloc(size_t bytes)
{
    void *ptr = counted(malloc(bytes > 0 ? bytes : 1));

    CHECK(ptr != NULL);
    return ptr;
}

void *
mem_zalloc(size_t bytes)
{
    void *ptr = counted(calloc(1, bytes > 0 ? bytes : 1));

    CHECK(ptr != NULL);
    return ptr;
}

void *
mem_try_realloc(void *ptr, size_t bytes)
{
    size_t before = ptr != NULL ? malloc_usable_size(ptr) : 0;
    void *grown = fault() ? NULL : realloc(ptr, bytes > 0 ? bytes : 1);

    if (grown != NULL) {
        metric_add(METRIC_MEM_USED,
                   (int64_t)malloc_usable_size(grown) - (int64_t)before);
    }
    return grown;
}

void
mem_free(void *ptr)
{
    if (ptr != NULL) {
        metric_add(METRIC_MEM_USED, -(int64_t)malloc_usable_size(ptr));
        free(ptr);
    }
}

char *
mem_copy_text(struct slice text)
{
    char *copy = mem_alloc(text.len + 1);

    if (text.len > 0) {
        memcpy(copy, text.data, text.len);
    }
    copy[text.len] = '\0';
    return copy;
}

static void *
new_lines(size_t bytes)
{
    void *ptr;

    if (bytes >= HUGE_PAGE_BYTES) {
        ptr = huge_map(bytes);
        if (ptr != NULL) {
            metric_add(METRIC_MEM_USED, (int64_t)huge_round(bytes));
        }
        return ptr;
    }
    if (posix_memalign(&ptr, LINE_ALIGN, bytes) != 0) {
        return NULL;
    }
    memset(ptr, 0, bytes);
    return counted(ptr);
}

void *
mem_lines(size_t bytes)
{
    void *ptr = new_lines(bytes);

    CHECK(ptr != NULL);
    return ptr;
}

void *
mem_try_lines(size_t bytes)
{
    return fault() ? NULL : new_lines(bytes);
}

void
mem_free_lines(void *ptr, size_t bytes)
{
    if (bytes < HUGE_PAGE_BYTES || ptr == NULL) {
        mem_free(ptr);
        return;
    }
    metric_add(METRIC_MEM_USED, -(int64_t)huge_round(bytes));
    huge_unmap(ptr, bytes);
}

uint64_t
mem_used(void)
{
    int64_t used = metric_sum(METRIC_MEM_USED);

    return used > 0 ? (uint64_t)used : 0;
}

/* The number in word `index` of a file; 0 if there is none ("max", say). */
static uint64_t
read_number(const char *path, unsigned index)
{
    char line[256];
    char *at = line;
    FILE *file = fopen(path, "re");

    if (file == NULL) {
        return 0;
    }
    if (fgets(line, sizeof(line), file) == NULL) {
        line[0] = '\0';
    }
    (void)fclose(file);
    for (unsigned i = 0; i < index && at != NULL; i++) {
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

/* The lowest limit of this process's cgroup (version 2) and of those above it;
 * 0 if there is none. */
static uint64_t
group_limit(void)
{
    char group[512] = "";
    char path[600];
    uint64_t lowest = 0;
    char *name = group + 3; /* behind "0::" */
    FILE *file = fopen("/proc/self/cgroup", "re");

    if (file == NULL) {
        return 0;
    }
    if (fgets(group, sizeof(group), file) == NULL ||
        strncmp(group, "0::/", 4) != 0) {
        name = NULL;
    }
    (void)fclose(file);
    group[strcspn(group, "\n")] = '\0';
    while (name != NULL) {
        char *last = strrchr(name, '/');
        uint64_t limit;

        (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", name);
        limit = read_number(path, 0);
        if (limit > 0 && (lowest == 0 || limit < lowest)) {
            lowest = limit;
        }
        if (last == NULL) {
            break;
        }
        *last = '\0'; /* its parent; "" is the root */
    }
    return lowest;
}

uint64_t
mem_machine_bytes(void)
{
    static _Atomic uint64_t cached;
    uint64_t bytes = cached;

    if (bytes == 0) {
        uint64_t group = group_limit();

        bytes =
            (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        if (group > 0 && group < bytes) {
            bytes = group;
        }
        cached = bytes;
    }
    return bytes;
}

uint64_t
mem_resident_bytes(void)
{
    return read_number("/proc/self/statm", 1) * (uint64_t)sysconf(_SC_PAGESIZE);
}

void
mem_fail_at(unsigned nth)
{
    fail_countdown = nth;
    fail_fired = false;
}

bool
mem_fail_clear(void)
{
    bool fired = fail_fired;

    fail_countdown = 0;
    fail_fired = false;
    return fired;
}
