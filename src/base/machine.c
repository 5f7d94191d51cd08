/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads /proc and /sys. A line of /proc/self/cgroup is "0::/path" for version
 * 2, and "4:memory:/path" or "5:cpu,memory:/path" for version 1; a machine may
 * have both. In a container the path may be the one on the host, while the
 * folder begins at the container's group: groups that do not exist are skipped,
 * and the folder itself is read last.
 */
#include "base/machine.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns the number in word `index` of a file; 0 if there is none, as in
 * "max". */
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

/* Returns the lower limit; 0 means no limit. */
static uint64_t
lower(uint64_t a, uint64_t b)
{
    return b > 0 && (a == 0 || b < a) ? b : a;
}

/* Returns the lowest limit of a group and its parents. Shortens the name. */
static uint64_t
lowest_limit(const char *folder, const char *hierarchy, char *name,
             const char *file)
{
    uint64_t lowest = 0;

    for (;;) {
        char path[1024];
        char *last = strrchr(name, '/');

        (void)snprintf(path, sizeof(path), "%s%s%s/%s", folder, hierarchy, name,
                       file);
        lowest = lower(lowest, read_number(path, 0));
        if (last == NULL) {
            return lowest;
        }
        *last = '\0'; /* the parent; "" is the root */
    }
}

/* Returns whether a list such as "cpu,memory" names the memory controller. */
static bool
names_memory(const char *list, size_t len)
{
    static const char word[] = "memory";
    const size_t word_len = sizeof(word) - 1;

    for (size_t at = 0; at < len;) {
        size_t end = at + strcspn(list + at, ",:");

        if (end - at == word_len && memcmp(list + at, word, word_len) == 0) {
            return true;
        }
        at = end + 1;
    }
    return false;
}

static uint64_t
limit_of_line(const char *folder, char *line)
{
    char *list = strchr(line, ':');
    char *name = list != NULL ? strchr(list + 1, ':') : NULL;
    char copy[512];

    if (name == NULL || name[1] != '/') {
        return 0;
    }
    list++;
    name++;
    name[strcspn(name, "\n")] = '\0';
    if (list == name - 1) {
        (void)snprintf(copy, sizeof(copy), "%s", name);
        return lower(lowest_limit(folder, "", name, "memory.max"),
                     lowest_limit(folder, "/unified", copy, "memory.max"));
    }
    return names_memory(list, (size_t)(name - 1 - list))
               ? lowest_limit(folder, "/memory", name, "memory.limit_in_bytes")
               : 0;
}

uint64_t
machine_group_limit(const char *membership, const char *folder)
{
    char line[512];
    uint64_t lowest = 0;
    FILE *file = fopen(membership, "re");

    if (file == NULL) {
        return 0;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        lowest = lower(lowest, limit_of_line(folder, line));
    }
    (void)fclose(file);
    return lowest;
}

uint64_t
machine_memory_bytes(void)
{
    static _Atomic uint64_t cached;
    uint64_t bytes = atomic_load_explicit(&cached, memory_order_relaxed);

    if (bytes == 0) {
        bytes =
            (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        bytes = lower(
            bytes, machine_group_limit("/proc/self/cgroup", "/sys/fs/cgroup"));
        atomic_store_explicit(&cached, bytes, memory_order_relaxed);
    }
    return bytes;
}

uint64_t
machine_resident_bytes(void)
{
    return read_number("/proc/self/statm", 1) * (uint64_t)sysconf(_SC_PAGESIZE);
}
