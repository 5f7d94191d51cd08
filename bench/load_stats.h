/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The load generator's clocks and its latency histogram. It reads the server's
 * CPU time from /proc/PID/task/<tid>/schedstat, which counts nanoseconds
 * exactly; utime and stime count only ticks. The histogram is log-linear with
 * 32 steps for each power of two, so a percentile is at most 1/32 too high. One
 * thread uses it.
 */
#pragma once

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { HISTOGRAM_STEPS = 32, HISTOGRAM_ROWS = 60 };

struct histogram {
    uint64_t counts[HISTOGRAM_ROWS][HISTOGRAM_STEPS];
    uint64_t total;
};

/* The CPU time of a process so far, and the time for which it was ready and
 * waited for a CPU. */
struct cpu_time {
    uint64_t run_ns;
    uint64_t wait_ns;
};

static inline uint64_t
clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static inline void
histogram_add(struct histogram *histogram, uint64_t value)
{
    unsigned row = 0;

    /* Row 0 holds 0..31 exactly; row r holds [32 << (r-1), 64 << (r-1)). */
    if (value >= HISTOGRAM_STEPS) {
        row = 59 - (unsigned)__builtin_clzll(value);
        value = (value >> (row - 1)) - HISTOGRAM_STEPS;
    }
    histogram->counts[row][value]++;
    histogram->total++;
}

/* Returns the upper end of the step that contains the given fraction of values.
 */
static inline uint64_t
histogram_percentile(const struct histogram *histogram, double fraction)
{
    uint64_t wanted = (uint64_t)((double)histogram->total * fraction);
    uint64_t seen = 0;

    for (unsigned row = 0; row < HISTOGRAM_ROWS; row++) {
        for (unsigned step = 0; step < HISTOGRAM_STEPS; step++) {
            seen += histogram->counts[row][step];
            if (seen > wanted || (seen == histogram->total && seen > 0)) {
                return row == 0 ? step
                                : (HISTOGRAM_STEPS + step + UINT64_C(1))
                                      << (row - 1);
            }
        }
    }
    return 0;
}

/* Adds up all threads of PID. Returns false if there is no such process. */
static inline bool
cpu_time_of(uint64_t pid, struct cpu_time *ret_time)
{
    struct cpu_time sum = { 0, 0 };
    struct dirent *entry;
    char path[320];
    DIR *tasks;

    snprintf(path, sizeof(path), "/proc/%" PRIu64 "/task", pid);
    tasks = opendir(path);
    if (tasks == NULL) {
        return false;
    }
    while ((entry = readdir(tasks)) != NULL) {
        uint64_t run_ns, wait_ns;
        FILE *file;

        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof(path), "/proc/%" PRIu64 "/task/%s/schedstat", pid,
                 entry->d_name);
        file = fopen(path, "r");
        if (file == NULL) {
            continue; /* the thread has just ended */
        }
        if (fscanf(file, "%" SCNu64 " %" SCNu64, &run_ns, &wait_ns) == 2) {
            sum.run_ns += run_ns;
            sum.wait_ns += wait_ns;
        }
        fclose(file);
    }
    closedir(tasks);
    *ret_time = sum;
    return true;
}
