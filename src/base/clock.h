/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The two clocks. A read costs about 20 ns: dispatch reads once a run of
 * commands and passes the value on. Any thread.
 */
#pragma once

#include <stdint.h>

/* Since some fixed point; never steps. */
uint64_t clock_mono_ns(void);

/* Milliseconds and microseconds since 1970, as the operator set the clock. */
uint64_t clock_wall_ms(void);
uint64_t clock_wall_us(void);

/* The first of these at a moment of clock_mono_ns that has just been: read once
 * a millisecond and reckoned from that in between, which costs nothing. */
uint64_t clock_wall_ms_at(uint64_t mono_ns);

/* CPU time of the calling thread. */
uint64_t clock_thread_cpu_ns(void);
