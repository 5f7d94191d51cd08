/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The clocks. A read costs about 20 ns, so the time is read once for many
 * commands and passed on. Any thread.
 */
#pragma once

#include <stdint.h>

/* Nanoseconds since some fixed point; never steps. */
uint64_t clock_mono_ns(void);

static inline uint64_t
clock_mono_ms(void)
{
    return clock_mono_ns() / 1000000;
}

/* Returns how long ago this time of clock_mono_ms was; 0 for a time to come,
 * and for 0, which means never. */
static inline uint64_t
clock_ms_since(uint64_t then_ms)
{
    uint64_t now_ms = clock_mono_ms();

    return then_ms > 0 && then_ms < now_ms ? now_ms - then_ms : 0;
}

/* Milliseconds and microseconds since 1970, by the system's clock. */
uint64_t clock_wall_ms(void);
uint64_t clock_wall_us(void);

/* The monotonic and the system's clock as of the last tick of the kernel: late
 * by some milliseconds, and read in 5 ns. And how long a tick is. */
uint64_t clock_mono_tick_ns(void);
uint64_t clock_wall_tick_ns(void);
uint64_t clock_tick_ns(void);

/* Returns clock_wall_ms() for a recent value of clock_mono_ns(). The clock is
 * read once a millisecond; in between the time is computed from that. */
uint64_t clock_wall_ms_at(uint64_t mono_ns);

/* Likewise, but the time in which the machine was suspended counts. */
uint64_t clock_boot_ns(void);

/* Returns by how many milliseconds the system's clock has been set since the
 * last call, or 0: less than a minute. Suspended time is no jump. *pace is 0
 * before the first call. Keep calling it: a slow drift is none. */
int64_t clock_jump_ms(int64_t *pace, uint64_t wall_ms, uint64_t boot_ns);

/* CPU time of the calling thread. */
uint64_t clock_thread_cpu_ns(void);
