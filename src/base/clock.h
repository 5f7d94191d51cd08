/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The clocks. A read costs about 20 ns, so the time is read once for many
 * commands and passed on. Any thread.
 */
#pragma once

#include <stdint.h>

/* Returns nanoseconds since some fixed point. This clock is never set. */
uint64_t clock_mono_ns(void);

static inline uint64_t
clock_mono_ms(void)
{
    return clock_mono_ns() / 1000000;
}

/* Returns how long ago this time of clock_mono_ms was; 0 for a time in the
 * future, and for then_ms = 0, which means never. */
static inline uint64_t
clock_ms_since(uint64_t then_ms)
{
    uint64_t now_ms = clock_mono_ms();

    return then_ms > 0 && then_ms < now_ms ? now_ms - then_ms : 0;
}

/* Return milliseconds and microseconds since 1970, by the system's clock. */
uint64_t clock_wall_ms(void);
uint64_t clock_wall_us(void);

/* Return the monotonic and the system's clock as of the last tick of the
 * kernel: some milliseconds late, but read in 5 ns. clock_tick_ns() returns how
 * long a tick is. */
uint64_t clock_mono_tick_ns(void);
uint64_t clock_wall_tick_ns(void);
uint64_t clock_tick_ns(void);

/* Returns clock_wall_ms() for a recent value of clock_mono_ns(). The system's
 * clock is read once a millisecond; between two reads the result is computed.
 */
uint64_t clock_wall_ms_at(uint64_t mono_ns);

/* Does what clock_mono_ns() does, but counts the time in which the machine was
 * suspended, too. */
uint64_t clock_boot_ns(void);

/* Returns by how many milliseconds the system's clock has been set since the
 * last call; 0 if by less than a minute. Suspended time is no jump. *pace is 0
 * before the first call. Call it regularly: a slow drift between two calls is
 * not reported. */
int64_t clock_jump_ms(int64_t *pace, uint64_t wall_ms, uint64_t boot_ns);

/* Returns the CPU time of the calling thread. */
uint64_t clock_thread_cpu_ns(void);
