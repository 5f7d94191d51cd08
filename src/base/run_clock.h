/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The run clock: the monotonic clock without the time in which this process did
 * not run (a stopped process, a paused container or machine). It judges
 * deadlines that other servers and clients must meet: during our pause their
 * bytes lay in our sockets, unread. Deadlines that protect others, such as a
 * lease, are judged by clock_boot_ns or clock_mono_ns, since the others did not
 * wait for us.
 *
 * Loop 0 reads this clock every 100 ms at the latest. If nobody has read it for
 * longer than RUN_CLOCK_STEP_NS, it moves by just RUN_CLOCK_STEP_NS. So it
 * never jumps, whichever thread is the first to read it after a pause. Any
 * thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    RUN_CLOCK_STEP_NS = 250 * 1000 * 1000,
    RUN_CLOCK_PAUSES = 32 /* how many are remembered */
};

uint64_t run_clock_ns(void);
uint64_t run_clock_ms(void);

/* Returns how much of the time since this value of clock_mono_ns() the process
 * has run. */
uint64_t run_clock_since(uint64_t mono_ns);

/* Returns clock_mono_ns() / 10^6 as it was at this time of the run clock; 0,
 * which stands for never, stays 0. */
uint64_t run_clock_to_mono_ms(uint64_t run_ms);

/* The end of a pause. */
struct run_clock_pause {
    uint64_t run_ns;
    uint64_t before_ns, after_ns; /* mono - run, up to run_ns and from it on */
};

/* The clock itself, which tests use directly. It begins with zeros. */
struct run_clock {
    uint64_t seen_ns;    /* mono, when it was read last */
    uint64_t skipped_ns; /* mono - run */
    struct run_clock_pause pauses[RUN_CLOCK_PAUSES]; /* a ring */
    size_t count;                                    /* of pauses so far */
};

/* Reads the clock at this time of the monotonic clock. */
uint64_t run_clock_read(struct run_clock *clock, uint64_t mono_ns);

/* Convert times that were read after one of the last RUN_CLOCK_PAUSES pauses.
 */
uint64_t run_clock_from_mono(const struct run_clock *clock, uint64_t mono_ns);
uint64_t run_clock_to_mono(const struct run_clock *clock, uint64_t run_ns);
