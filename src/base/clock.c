/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the clocks for all other files. Only keyspace/sparse.c calls
 * clock_gettime() itself, for a deadline.
 */
#include "base/clock.h"

#include <time.h>

static const uint64_t MS = 1000000; /* ns */

static struct timespec
read_clock(clockid_t id)
{
    struct timespec now = { 0, 0 };

    (void)clock_gettime(id, &now);
    return now;
}

static uint64_t
as_ns(struct timespec t)
{
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

uint64_t
clock_mono_ns(void)
{
    return as_ns(read_clock(CLOCK_MONOTONIC));
}

uint64_t
clock_boot_ns(void)
{
    return as_ns(read_clock(CLOCK_BOOTTIME));
}

uint64_t
clock_mono_tick_ns(void)
{
    return as_ns(read_clock(CLOCK_MONOTONIC_COARSE));
}

uint64_t
clock_wall_tick_ns(void)
{
    return as_ns(read_clock(CLOCK_REALTIME_COARSE));
}

uint64_t
clock_tick_ns(void)
{
    struct timespec tick = { 0, 0 };

    (void)clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    return as_ns(tick);
}

uint64_t
clock_thread_cpu_ns(void)
{
    return as_ns(read_clock(CLOCK_THREAD_CPUTIME_ID));
}

uint64_t
clock_wall_ms_at(uint64_t mono_ns)
{
    static _Thread_local uint64_t read_mono_ns, read_wall_ns;

    /* The parser may have spent some time since the caller read mono_ns, so
     * both clocks are read here. The wall clock is read first, so the sum may
     * be behind the real time, but is never ahead of it. If mono_ns is before
     * read_mono_ns, the difference wraps around: both are read again, and the
     * sum is still right. */
    if (mono_ns - read_mono_ns >= MS) {
        read_wall_ns = as_ns(read_clock(CLOCK_REALTIME));
        read_mono_ns = clock_mono_ns();
    }
    return (read_wall_ns + (mono_ns - read_mono_ns)) / MS;
}

int64_t
clock_jump_ms(int64_t *pace, uint64_t wall_ms, uint64_t boot_ns)
{
    enum { JUMP_MS = 60 * 1000 };
    int64_t before = *pace;
    int64_t jump;

    *pace = (int64_t)wall_ms - (int64_t)(boot_ns / MS);
    jump = before != 0 ? *pace - before : 0;
    return jump >= JUMP_MS || jump <= -JUMP_MS ? jump : 0;
}

uint64_t
clock_wall_us(void)
{
    return as_ns(read_clock(CLOCK_REALTIME)) / 1000;
}

uint64_t
clock_wall_ms(void)
{
    return as_ns(read_clock(CLOCK_REALTIME)) / MS;
}
